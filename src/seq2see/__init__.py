"""seq2see: sequence to sequence you can see."""

__version__ = "0.1.0"
