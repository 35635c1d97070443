"""The data of the explorer: functions from a Translator to what a page or a notebook shows."""
