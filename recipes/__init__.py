"""The recipes that ship with seq2see; a package so that they travel in the wheel."""
