// Parts of a picture as one stop of the Tab key: the arrow keys move to the nearest part.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ASIDE = 3; // a step aside counts as much as three ahead

function middle(element) {
  const box = element.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

function nearest(parts, present, [right, down]) {
  const [x, y] = middle(present);
  let best = null;
  let least = Infinity;
  for (const part of parts) {
    const [otherX, otherY] = middle(part);
    const ahead = (otherX - x) * right + (otherY - y) * down;
    const aside = Math.abs((otherX - x) * down) + Math.abs((otherY - y) * right);
    const distance = ahead + ASIDE * aside;
    if (ahead > 1 && distance < least) [best, least] = [part, distance];
  }
  return best;
}

/** Let the keyboard and the pointer pick the keyed parts of an element. */
export function makeRoam(area, pick) {
  const parts = [...area.querySelectorAll("[data-key]")];
  const chosen = parts.find((part) => part.getAttribute("aria-pressed") === "true") ?? parts[0];
  const stopAt = (one) => {
    for (const part of parts) part.setAttribute("tabindex", part === one ? 0 : -1);
  };
  stopAt(chosen);
  for (const part of parts) part.addEventListener("focus", () => stopAt(part));
  area.addEventListener("click", (event) => {
    const part = event.target.closest("[data-key]");
    if (part === null) return;
    part.focus();
    pick(part.dataset.key);
  });
  area.addEventListener("keydown", (event) => {
    const part = event.target.closest("[data-key]");
    if (part === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) nearest(parts, part, ARROWS[event.key])?.focus();
    else if (event.key === "Home") parts[0].focus();
    else if (event.key === "End") parts.at(-1).focus();
    else if (event.key === "Enter" || event.key === " ") pick(part.dataset.key);
    else return;
    event.preventDefault();
  });
}
