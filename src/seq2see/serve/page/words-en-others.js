// The words of the page in English, for models that do not translate.

export const enOthers = {
  noTranslation: "This server has no model that translates; the other rooms look into its models.",
  picture: "Picture",
  pictureNote:
    "BMP, GIF, JPEG, PNG or WebP of at most 750 kB. It stays in this tab and is not part of the link.",
  noPicture: "Choose a picture above to look inside the model.",
  largePicture: "The picture is {size} kB; the server takes at most {most} kB.",
  unreadable: "The browser cannot read {name}.",
  "subject.picture": "Model {model}; picture: {picture}",
  "sentence.continuation": "Text",
  "sentence.blanks": "Sentence",
  "sentence.label": "Text",
  "typeSentence.continuation": "Type the beginning of a text in the model’s language",
  "typeSentence.blanks": "Type a sentence with <mask> in place of a word",
  "typeSentence.label": "Type a text to classify",
  "kind.continuation": "language model",
  "kind.blanks": "masked model",
  "kind.label": "text classifier",
  "kind.picture": "picture classifier",
  "title.words.continuation": "What comes next?",
  "lead.words.continuation":
    "Each token of the text with its probability given those before it, and how the model goes on. Choose a token to see what else was likely. A language model has no source sentence, so there are no source words to attribute these to.",
  "title.words.blanks": "What stands in the blanks?",
  "lead.words.blanks":
    "The likeliest word for each <mask>. Choose one to see the others. A masked model has no source sentence, so there are no source words to attribute these to.",
  "title.words.label": "Which label does the text get?",
  "lead.words.label":
    "The probability of every label. A classifier writes no words, so there are none to explain one by one.",
  "title.words.picture": "What is in the picture?",
  "lead.words.picture":
    "The probability of every class. A picture classifier writes no words, so there are none to explain one by one.",
  "lead.attention.continuation":
    "Each small square is one head: rows are queries, columns are keys, a strong colour is a large weight. A language model has no source sentence, so there is no cross-attention to align.",
  "lead.attention.blanks":
    "Each small square is one head: rows are queries, columns are keys, a strong colour is a large weight. A masked model writes no second sentence, so there is no cross-attention to align.",
  "lead.attention.label":
    "Each small square is one head: rows are queries, columns are keys, a strong colour is a large weight. A classifier writes no second sentence, so there is no cross-attention to align.",
  "title.attention.picture": "Where in the picture does each head read?",
  "lead.attention.picture":
    "Each small square is one head over the patches of the picture: a strong colour is a large share. A picture has no tokens, so there is no cross-attention to align.",
  "title.layers.continuation": "What would each layer have said next?",
  "lead.layers.continuation":
    "The output matrix applied after every layer: how the next token forms from the bottom up.",
  "lacks.heads":
    "This room compares a translation with and without some heads, and a {kind} translates nothing.",
  "lacks.beam": "A {kind} decides in a single pass, so there is no search to draw.",
  "lacks.beam.continuation":
    "A language model continues a text greedily here, which Words shows; it has no source sentence to search translations of.",
  "lacks.layers": "A {kind} predicts no next token, so there is none to follow through the layers.",
  "lacks.anatomy":
    "This room follows a sentence and its translation from ids to logits, and a {kind} has no translation.",
  "lacks.training":
    "This room follows one translation through the checkpoints of a run, and a {kind} has none.",
  "lacks.compare":
    "This room compares two translations of one sentence, and a {kind} translates nothing.",
  givenText: "The text",
  goesOn: "How it continues",
  tokenByToken: "Token by token",
  part: "Part",
  nextNote:
    "Below each token its probability given those before it; log-probability of the text: {log}. The continuation takes the likeliest token each time, at most 40 of them; </s>, the end, is last.",
  filled: "The blanks filled in",
  blank: "Blank",
  blankNumber: "Blank {blank}",
  blankLabel: "Blank {blank}: {token}, probability {probability}",
  blanksNote: "Each blank is filled by itself, from the text around it. Choose one.",
  noBlank: "The sentence has no blank. Write <mask> in place of a word.",
  classes: "Classes",
  class: "Class",
  classesNote: "The {count} likeliest are drawn; the table has all.",
  input: "As the model reads it",
  inputNote: "{width} × {height} pixels.",
  pixelRow: "Row",
  patchesNote: "Each head is scaled to its own largest share.",
  patchAt: "row {row}, column {column}",
  patchRow: "row of patches",
  patchColumn: "column of patches",
  classTokenNote: "The share of each patch in what the class token reads.",
  meanPatchNote: "The mean share of each patch in what all patches read.",
  rollout: "Attention rollout",
  rolloutNote: "Attention of all layers multiplied, with residuals as half of each.",
  "layerCell.continuation": "Layer {layer}: {token}, {probability}; the text’s token has rank {rank}",
  "layerSaid.continuation":
    "After layer {layer} the model would say {token} ({probability}); the text’s {final} has rank {rank} ({chance}).",
  "layersNote.continuation":
    "Bold with ✓: the likeliest token is that of the text; else the rank that the text’s token has there.",
  "said.continuation": "Text",
  "finalToken.continuation": "Token of the text",
  "finalRank.continuation": "Rank of the text’s token",
  "finalProbability.continuation": "Probability of the text’s token",
};
