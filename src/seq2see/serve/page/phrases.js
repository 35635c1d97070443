// Phrases that the server says in English, in the language of the page.

import { tag } from "./words.js";

const CHINESE = {
  // Models
  "this model is an export": "该模型是导出的模型",
  "serve the directory that it was made from to look inside":
    "请改用导出前的目录启动服务，以便查看内部",
  "this model cannot be opened by PyTorch": "PyTorch 无法打开该模型",
  "the server's log says why": "原因见服务器日志",
  // Axes
  batch: "批",
  head: "头",
  feature: "特征",
  hidden: "隐藏维",
  vocabulary: "词表",
  "feature of all heads": "各头特征",
  "query position": "查询位置",
  "key position": "键位置",
  "source position": "源端位置",
  "target position": "目标端位置",
  "source query position": "源端查询位置",
  "source key position": "源端键位置",
  "target query position": "目标端查询位置",
  "target key position": "目标端键位置",
  // Masks and the search
  "later position": "后面的位置",
  padding: "填充",
  "every hypothesis begins here": "所有候选都从这里开始",
  "rank {1} of {2} continuations": "在 {2} 个候选中排第 {1}",
  "the beam keeps {1}": "束中只保留 {1} 个",
  "a hypothesis ends only among the best {1}": "只有排进前 {1} 的候选才能结束",
  "still open at the end": "搜索结束时仍未完成",
  "when {1} finished hypotheses scored better": "已有 {1} 个得分更高的完整译文",
  // Tensors
  "source ids": "源端词元编号",
  "target ids": "目标端词元编号",
  "</s> last": "以 </s> 结尾",
  "<s> first": "以 <s> 开头",
  "a vector for each source token": "每个源词元一个向量",
  "a vector for each target token": "每个目标词元一个向量",
  "a vector for each source position": "每个源端位置一个向量",
  "a vector for each target position": "每个目标端位置一个向量",
  "encoder layer {1}": "编码器第 {1} 层",
  "decoder layer {1}": "解码器第 {1} 层",
  "its output": "该层输出",
  encoder: "编码器",
  decoder: "解码器",
  "self-attention": "自注意力",
  "cross-attention": "交叉注意力",
  "feed-forward network": "前馈网络",
  "queries of all heads": "所有头的查询",
  "keys of all heads": "所有头的键",
  "values of all heads": "所有头的值",
  "side by side": "依次拼接",
  "the heads' outputs": "各头的输出",
  mixed: "经线性变换混合",
  "attention weights of every head": "每个头的注意力权重",
  "scores of all pairs of query and key": "所有查询与键的得分",
  "hidden layer": "隐藏层",
  "before its ReLU": "ReLU 之前",
  "output layer": "输出层",
  normalised: "层归一化",
  "with mean 0 and variance 1 before its gain and bias":
    "增益与偏置之前均值为 0、方差为 1",
  "the memory": "编码器输出（记忆）",
  "the encoder's output": "编码器的输出",
  "the decoder's output": "解码器的输出",
  "residual around the self-attention": "自注意力的残差连接",
  "residual around the cross-attention": "交叉注意力的残差连接",
  "residual around the feed-forward network": "前馈网络的残差连接",
  logits: "logits",
  "one number for each entry of the target vocabulary": "目标词表中每个词元一个数",
};
const SEPARATORS = { ", ": "，", "; ": "；", ": ": "：" };

const patterns = Object.entries(CHINESE).map(([english, chinese]) => {
  return [new RegExp(`^${english.replace(/\{\d\}/g, "(\\d+)")}$`), chinese];
});

function inChinese(part) {
  for (const [pattern, chinese] of patterns) {
    const match = pattern.exec(part);
    if (match) return chinese.replace(/\{(\d)\}/g, (_, number) => match[number]);
  }
  return SEPARATORS[part] ?? part;
}

/** Say a phrase of the server, part by part; what the page does not know stays as it is. */
export function sayPhrase(phrase) {
  if (tag() === "en") return phrase;
  return phrase.split(/(, |; |: )/).map(inChinese).join("");
}
