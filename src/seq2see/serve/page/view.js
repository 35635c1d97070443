// The view in the address: a link to it reopens the room with everything that was chosen.

const SHARED = ["model", "text", "target", "beam", "off"]; // kept from room to room
const CHANGED = "view";

/** Read the view from the address: the room, and what is chosen by name, as text. */
export function currentView() {
  const [room, query = ""] = location.hash.slice(1).split("?");
  return { ...Object.fromEntries(new URLSearchParams(query)), room: room || "translate" };
}

function hashOf({ room, ...choices }) {
  const chosen = Object.entries(choices).filter(([, value]) => value != null && value !== "");
  const query = new URLSearchParams(chosen).toString();
  return query === "" ? `#${room}` : `#${room}?${query}`;
}

/** Link to a room with the present sentence and model. */
export function linkTo(room, view) {
  const shared = SHARED.map((name) => [name, view[name]]);
  return hashOf({ ...Object.fromEntries(shared), room });
}

/** Change a part of the view; null forgets a choice. */
export function change(choices) {
  history.replaceState(null, "", hashOf({ ...currentView(), ...choices }));
  dispatchEvent(new Event(CHANGED));
}

/** Call `act` whenever the view changes: by a link, a choice, or going back. */
export function onView(act) {
  addEventListener("hashchange", act);
  addEventListener(CHANGED, act);
}
