"""The special symbols of every vocabulary, and their ids."""

SPECIALS = ("<s>", "</s>", "<blank>", "<unk>")
BEGIN, END, PAD, UNKNOWN = range(4)
MASK = BEGIN  # an encoder's input never contains <s>, so that id is free for masked words
