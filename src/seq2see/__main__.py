"""`python -m seq2see`: the command line."""

from seq2see.cli.main import main

main()
