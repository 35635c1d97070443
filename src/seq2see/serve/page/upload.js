// The picture to look into: a file of the reader's, kept in the tab and nowhere else.

const MOST_BYTES = 750_000; // as the server takes them

const field = document.getElementById("look-picture");

let present = null; // its name, and its content in base64
let problem = null;
let latest = null; // the file that was chosen last; a slower one before it is ignored

/** The picture that was chosen; null if there is none. */
export function presentPicture() {
  return present;
}

/** Say what is wrong with the file that was chosen, if something is. */
export function problemOfPicture() {
  return problem;
}

function readFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    // A data URL is the type of the file, a comma, and its content in base64.
    reader.addEventListener("load", () => resolve(reader.result.split(",")[1] ?? ""));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

async function choose(file) {
  const kilobytes = (bytes) => Math.ceil(bytes / 1000);
  latest = file;
  present = problem = null;
  if (file.size > MOST_BYTES) {
    const values = { size: kilobytes(file.size), most: kilobytes(MOST_BYTES) };
    problem = { key: "largePicture", values };
    return;
  }
  try {
    const content = await readFile(file);
    if (file === latest) present = { name: file.name, content };
  } catch {
    if (file === latest) problem = { key: "unreadable", values: { name: file.name } };
  }
}

/** Let the reader choose a picture, and call `act` afterwards. */
export function startPicture(act) {
  const take = async () => {
    const [file] = field.files;
    if (file === undefined) return;
    await choose(file);
    act();
  };
  field.addEventListener("change", take);
  take(); // a browser may have kept the choice
}
