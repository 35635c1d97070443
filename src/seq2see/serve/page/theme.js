// Light or dark: as the system has it, until the reader chooses the other.

import { keep, recall } from "./memory.js";

const system = matchMedia("(prefers-color-scheme: dark)");

const CHANGED = "theme";

/** Call `act` whenever the colours change. */
export function onTheme(act) {
  document.addEventListener(CHANGED, act);
}

export function startTheme(button) {
  const root = document.documentElement;
  let chosen = recall("theme");

  const isDark = () => (chosen === null ? system.matches : chosen === "dark");

  function show() {
    if (chosen === null) delete root.dataset.theme;
    else root.dataset.theme = chosen;
    button.ariaPressed = String(isDark());
    document.dispatchEvent(new Event(CHANGED));
  }

  button.addEventListener("click", () => {
    const dark = !isDark();
    chosen = dark === system.matches ? null : dark ? "dark" : "light";
    keep("theme", chosen);
    show();
  });
  system.addEventListener("change", show);
  show();
}
