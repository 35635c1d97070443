// Requests to the server that sent this page.

const TOKEN = "seq2see.token";
const PATIENCE = 60_000; // milliseconds; the server's own deadline is shorter
const LONGEST_DELAY = 30; // seconds that a reader would wait
const UNREACHABLE = 0;

/** An answer that is no success, or none at all: then its status is 0. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let token = null;
try {
  token = sessionStorage.getItem(TOKEN);
} catch {
  // Storage may be refused; the token then lasts as long as the page.
}

export function hasToken() {
  return token !== null;
}

/** Send this token from now on, until the tab is closed. */
export function useToken(value) {
  token = value;
  try {
    sessionStorage.setItem(TOKEN, value);
  } catch {
    // As above.
  }
}

async function send(path, body, signal) {
  const headers = {};
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const timed = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
  const method = body === undefined ? "GET" : "POST";
  const options = { method, headers, body: JSON.stringify(body), signal: timed };
  try {
    const response = await fetch(path, options);
    return { response, content: await response.text() };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Refusal(UNREACHABLE, error.message);
  }
}

function read({ response, content }) {
  let values = {};
  try {
    values = JSON.parse(content);
  } catch {
    // A proxy's page of its own, say.
    if (response.ok) throw new Refusal(response.status, "the answer is not JSON");
  }
  if (!response.ok) throw new Refusal(response.status, values.error ?? response.statusText);
  return values;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Ask the server; where it is busy, once more after the delay it names, which `busy` is told. */
export async function ask(path, { body, signal, busy }) {
  const answer = await send(path, body, signal);
  const seconds = Number.parseInt(answer.response.headers.get("Retry-After"), 10);
  if (answer.response.status !== 503 || !(seconds <= LONGEST_DELAY)) return read(answer);
  busy(seconds);
  await pause(seconds, signal);
  return read(await send(path, body, signal));
}
