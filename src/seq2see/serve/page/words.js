// The words of the page in English and Chinese.

import { keep, recall } from "./memory.js";

export const WORDS = {
  en: {
    rooms: "Rooms",
    translate: "Translate",
    dark: "Dark theme",
    from: "From",
    to: "To",
    model: "Model",
    swap: "Swap languages",
    text: "Text to translate",
    type: "Type or paste text",
    translation: "Translation",
    appears: "The translation appears as you type",
    clear: "Clear",
    copy: "Copy",
    copied: "Copied",
    count: "{count} / {most} characters",
    by: "{model} · {engine} · {ms} ms",
    others: "Other translations",
    none: "Type a text to see its other translations.",
    single: "The model has no other translation.",
    score: "Score: length-penalised log-probability, summed over sentences. Closer to 0 is likelier.",
    copies: "copies the translation",
    swaps: "swaps the languages",
    long: "The text has {count} characters; the server takes at most {most}.",
    busy: "The server is busy. Trying again in {seconds} s …",
    occupied: "The server is still busy. Your text is still here.",
    unreachable: "The server cannot be reached. Your text is still here.",
    late: "The translation took longer than the server allows.",
    refused: "The server refuses the request: {message}",
    failed: "The server failed with status {status}: {message}",
    locked: "This server asks for a token.",
    wrong: "The server does not accept this token.",
    token: "Token",
    use: "Use token",
    kept: "Kept in this tab only, until you close it.",
    again: "Try again",
  },
  zh: {
    rooms: "页面",
    translate: "翻译",
    dark: "深色主题",
    from: "源语言",
    to: "目标语言",
    model: "模型",
    swap: "交换语言",
    text: "待翻译的文本",
    type: "输入或粘贴文本",
    translation: "译文",
    appears: "译文会随输入实时更新",
    clear: "清空",
    copy: "复制",
    copied: "已复制",
    count: "{count} / {most} 个字符",
    by: "{model} · {engine} · {ms} 毫秒",
    others: "其他译文",
    none: "输入文本后可查看其他译文。",
    single: "模型没有给出其他译文。",
    score: "得分：经长度惩罚的对数概率（多句时求和），越接近 0，可能性越高。",
    copies: "复制译文",
    swaps: "交换语言",
    long: "文本有 {count} 个字符，服务器最多接受 {most} 个。",
    busy: "服务器繁忙，{seconds} 秒后自动重试……",
    occupied: "服务器仍然繁忙，已输入的文本不会丢失。",
    unreachable: "无法连接服务器，已输入的文本不会丢失。",
    late: "翻译用时超过了服务器的上限。",
    refused: "服务器拒绝了请求：{message}",
    failed: "服务器出错（状态码 {status}）：{message}",
    locked: "访问此服务器需要令牌。",
    wrong: "令牌无效。",
    token: "令牌",
    use: "使用令牌",
    kept: "仅保存在当前标签页，关闭后即清除。",
    again: "重试",
  },
};

const TAGS = { en: "en", zh: "zh-CN" };
const CHANGED = "words";

let language = "en";

/** BCP 47 tag of the page's language. */
export function tag() {
  return TAGS[language];
}

/** Return the words of a key, with its {values} filled in; numbers as the language writes them. */
export function say(key, values = {}) {
  return WORDS[language][key].replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(tag()) : value;
  });
}

/** Call `act` whenever the page's language changes. */
export function onChange(act) {
  document.addEventListener(CHANGED, act);
}

function setLanguage(code) {
  language = code;
  document.documentElement.lang = tag();
  for (const element of document.querySelectorAll("[data-words]")) {
    element.textContent = say(element.dataset.words);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.ariaLabel = say(element.dataset.label);
    if (element.matches(".icon")) element.title = element.ariaLabel;
  }
  for (const element of document.querySelectorAll("[data-hint]")) {
    const name = element.matches("textarea") ? "placeholder" : "data-placeholder";
    element.setAttribute(name, say(element.dataset.hint));
  }
  document.dispatchEvent(new Event(CHANGED));
}

/** Set the language that was chosen before, else the browser's; let a button switch it. */
export function startLanguage(button) {
  const first = recall("language") ?? navigator.language.split("-")[0];
  const other = () => (language === "en" ? "zh" : "en");
  onChange(() => {
    button.textContent = { en: "English", zh: "中文" }[other()];
    button.lang = TAGS[other()];
  });
  button.addEventListener("click", () => {
    setLanguage(other());
    keep("language", language);
  });
  setLanguage(first === "zh" ? "zh" : "en");
}
