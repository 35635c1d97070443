// Errands to the server, one at a time in a room, and the one place that says what went wrong.

import { hasToken, useToken } from "./server.js";
import { onChange, say } from "./words.js";

const find = (id) => document.getElementById(id);
const trouble = find("trouble");
const again = find("again");
const access = find("access");
const token = find("token");

let present = null; // the errands of the room that is open

function show() {
  const problem = present?.problem ?? null;
  trouble.hidden = problem === null;
  trouble.firstElementChild.textContent = problem && say(problem.key, problem.values);
  again.hidden = !problem?.retry;
  access.hidden = problem?.values?.status !== 401;
}

function problemOf(error, retry) {
  if (error.status === undefined) throw error; // a mistake in this page
  const values = { status: error.status, message: error.message };
  const locked = hasToken() ? "wrong" : "locked";
  const known = { 0: "unreachable", 401: locked, 503: "occupied", 504: "late" };
  const key = known[error.status] ?? (error.status < 500 ? "refused" : "failed");
  return { key, values, retry: error.status === 401 ? null : retry };
}

/** The errands of a room; `mark` is told whether what it shows is old, and whether it waits. */
export class Errands {
  constructor(mark) {
    this.mark = mark;
    this.problem = null;
    this.running = new AbortController();
    this.repeat = null;
  }

  /** Show this room's problem, if it has one, in `place`. */
  enter(place) {
    present = this;
    place.append(trouble, access);
    show();
  }

  /** Give up what is under way; say what is wrong, if something is. */
  stop(problem = null) {
    this.running.abort();
    this.mark({ old: false, waiting: false });
    this.problem = problem;
    show();
  }

  /** Do something that asks the server, in place of what was asked before. */
  async replace(act, retry) {
    this.running.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    const busy = (seconds) => {
      this.problem = { key: "busy", values: { seconds } };
      show();
    };
    this.mark({ old: true, waiting: true });
    this.repeat = retry;
    try {
      await act({ signal, busy });
      if (signal.aborted) return;
      this.problem = null;
      this.mark({ old: false, waiting: false });
    } catch (error) {
      if (signal.aborted) return;
      this.problem = problemOf(error, retry);
      this.mark({ old: true, waiting: false });
    }
    show();
  }
}

/** Let the reader try again, and give the token that the server asks for. */
export function startErrands() {
  again.addEventListener("click", () => present.problem.retry());
  access.addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(token.value.trim());
    present.repeat();
  });
  onChange(show);
}

/** Go to the token's field, where the server asks for one. */
export function focusToken() {
  if (!access.hidden) token.focus();
}
