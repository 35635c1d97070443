// Choices that outlive the page; a browser may refuse to keep them.

export function recall(key) {
  try {
    return localStorage.getItem(`seq2see.${key}`);
  } catch {
    return null;
  }
}

/** Remember a choice; with null, forget it. */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(`seq2see.${key}`);
    else localStorage.setItem(`seq2see.${key}`, value);
  } catch {
    // The choice then lasts as long as the page.
  }
}
