#!/usr/bin/python3
"""What a budget makes of an output, worked out from the whole of it.

    budget.py CHARACTERS PATH <OUTPUT     the head, the marker that names PATH, and the tail
    budget.py --count <OUTPUT             how many characters it is

A character is a valid UTF-8 sequence or one byte that belongs to none: what Python's decoder with
`surrogateescape` makes of it.
"""
import sys


def main():
    characters = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if sys.argv[1] == "--count":
        print(len(characters))
        return
    limit, path = int(sys.argv[1]), sys.argv[2]
    tail = limit // 2
    head = limit - tail
    if len(characters) > limit:
        start = characters[:head]
        end = characters[len(characters) - tail:]
        characters = (start + ("\n" if start and not start.endswith("\n") else "")
                      + f"... [{len(characters) - limit:,} chars omitted \u2014 "
                      + f"full output saved to {path}]\n" + end)
    sys.stdout.buffer.write(characters.encode("utf-8", "surrogateescape"))


main()
