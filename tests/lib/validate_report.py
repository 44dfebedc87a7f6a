#!/usr/bin/python3
"""Checks JSON documents of carrel against their schemas in docs/: reports, and with --schema plan plans.

    validate_report.py REPORT...                  each file is one valid report
    validate_report.py --command ARGV REPORT      and its command is ARGV: the words, each with a NUL
    validate_report.py --strict REPORT...         and the schema notices every missing or extra field
    validate_report.py --docs                     report.md names every field and word of the schema
    validate_report.py --schema NAME ...          the same for docs/NAME.schema.json and NAME.md

Needs python3-jsonschema. Exit status 0 when everything holds; 1 with one line for each fault.
"""
import argparse
import copy
import json
import os
import sys

import jsonschema

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


def load_schema(name):
    with open(os.path.join(DOCS, f"{name}.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def refuse_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a member appears twice among {names}")
    return dict(pairs)


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def load_report(path):
    with open(path, "rb") as file:
        data = file.read()
    if not data.endswith(b"\n") or data.count(b"\n") != 1:
        raise ValueError("a report is one line and ends with a newline")
    return json.loads(data.decode("utf-8"), object_pairs_hook=refuse_duplicates,
                      parse_constant=refuse_constant)


def argv_bytes(report):
    """The command as bytes: lone surrogates stand for bytes that are no UTF-8."""
    words = (word.encode("utf-8", "surrogateescape") for word in report["command"])
    return b"".join(word + b"\0" for word in words)


def objects(value):
    """Every JSON object inside a value, outermost first."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, list):
        for element in value:
            yield from objects(element)


def thinned(value):
    """The same, with one of the objects of a list that have the same members and the same name."""
    if isinstance(value, dict):
        return {name: thinned(member) for name, member in value.items()}
    if not isinstance(value, list):
        return value
    kept = {}
    for number, element in enumerate(value):
        shape = number
        if isinstance(element, dict):
            shape = (frozenset(element), element.get("name") if "number" in element else None)
        kept.setdefault(shape, thinned(element))
    return list(kept.values())


def mutations(report):
    """Copies of a report with one member missing or one too many, each with its description."""
    report = thinned(report)
    for number, original in enumerate(objects(report)):
        for name in original:
            changed = copy.deepcopy(report)
            del list(objects(changed))[number][name]
            yield f"without {name} in {sorted(original)}", changed
        changed = copy.deepcopy(report)
        list(objects(changed))[number]["unheard-of"] = None
        yield f"with an extra member in {sorted(original)}", changed


def check_report(validator, path, options):
    try:
        report = load_report(path)
    except (OSError, ValueError) as error:
        return [str(error)]
    faults = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
              for error in validator.iter_errors(report)]
    if options.command and not faults:
        with open(options.command, "rb") as file:
            if file.read() != argv_bytes(report):
                faults.append("the command is not the one that was given")
    if options.strict and not faults:
        faults = [f"the schema accepts it {what}" for what, changed in mutations(report)
                  if validator.is_valid(changed)]
    return faults


def schema_words(schema):
    """Names of all members and all enumerated words."""
    for part in objects(schema):
        if "properties" in part and part.get("type"):
            yield from part["properties"]
        yield from (word for word in part.get("enum", []) if isinstance(word, str))


def check_docs(name, schema):
    with open(os.path.join(DOCS, f"{name}.md"), encoding="utf-8") as file:
        text = file.read()
    return [f"{name}.md does not mention `{word}`" for word in sorted(set(schema_words(schema)))
            if f"`{word}`" not in text]


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--schema", metavar="NAME", default="report")
    parser.add_argument("--command", metavar="ARGV")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("reports", nargs="*")
    options = parser.parse_args()
    if not options.reports and not options.docs:
        parser.error("nothing to check")
    schema = load_schema(options.schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = check_docs(options.schema, schema) if options.docs else []
    for path in options.reports:
        faults += [f"{path}: {fault}" for fault in check_report(validator, path, options)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
