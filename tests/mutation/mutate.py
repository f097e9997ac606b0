#!/usr/bin/env python3
"""Writes a copy of the templates in which every mutation can be switched on at run time.

mutate.py TEMPLATES OUTPUT: OUTPUT/templates is the copy, OUTPUT/mutants.json says what each mutant does. The copies of a
mutated file ask soliton_mutant(id), see mutant.h, at every place that could be wrong: so kernels are compiled once for all
mutants. What the compiler evaluates itself is never mutated; such places are never reached.
"""
import json
import re
import shutil
import sys
from pathlib import Path

# In this order mutants are numbered.
FILES = ["machine/*.cuh", "one_row/*.cuh", "rows/*.cuh", "ops/*.cuh", "formats/*.cuh", "layout/deal.h", "layout/tree.h",
         "primitives/stream.cuh"]
# What only a card or a timeline has, and names of types.
SKIPPED = ["machine/timeline.cuh", "machine/delay.cuh", "formats/formats.cuh", "primitives/stream.cuh"]

KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "static_assert", "else", "do", "case", "template",
            "using", "constexpr", "static", "const", "struct", "class", "requires", "alignas", "decltype"}
# Calls that no kernel's answer depends on: notes for the timeline and for people, and hints to L2 and the compiler.
HINTS = re.compile(r"^(mark|note|set_status|prefetch\w*|SOLITON_\w+|static_assert|hold_up|page_waits_\.\w+|slot_waits_\.\w+|"
                   r"window_waits_\.\w+|copies\.prefetch\w*|take_registers|give_registers)\b")
SYNC = re.compile(r"wait|fence|arrive|sync|commit|announce|release|limit|begin|end\(|drain|expect|barrier|add_release|report|"
                  r"advance|publish|signal|post")

RELATIONS = {"<": "kLess", "<=": "kLessEqual", ">": "kGreater", ">=": "kGreaterEqual", "==": "kEqual", "!=": "kUnequal"}
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def blank(text):
    """The text with comments, strings and preprocessor lines made blank, of the same length."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", spaces, text,
                  flags=re.S | re.M)


def matching(code, at):
    """Index of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth = 0
    for i in range(at, len(code)):
        if code[i] in pairs:
            depth += 1
        elif code[i] in pairs.values():
            depth -= 1
            if depth == 0:
                return i
    raise ValueError(f"unclosed bracket: {code[at:at + 60]!r}")


def enclosing_brackets(code):
    """For each index the bracket that it stands in."""
    stack = [""]
    result = []
    for c in code:
        if c in ")]}":
            stack.pop()
        result.append(stack[-1])
        if c in "([{":
            stack.append(c)
    return result


def constant_spans(code):
    """Where the compiler evaluates, or where a comparison is none: declarations of constants, assertions, if constexpr, and
    heads of templates."""
    spans = []
    for match in re.finditer(r"\bstatic_assert\s*\(|\bif constexpr\s*\(|\bdecltype\s*\(|\bsizeof\s*\(|\balignas\s*\(|\bSOLITON_UNROLL\w*", code):
        spans.append((match.start(), matching(code, match.end() - 1) + 1 if match.group(0).endswith("(") else match.end()))
    # A constant's declaration: of one line or several, up to its semicolon; functions have a body instead.
    for match in re.finditer(r"^[ \t]*(?:template [^\n]*\n[ \t]*)?(?:inline |static |SOLITON_\w+ )*constexpr\b", code, re.M):
        i = match.end()
        depth = 0
        body = False
        while i < len(code):
            if code[i] in "([":
                depth += 1
            elif code[i] in ")]":
                depth -= 1
            elif code[i] == "{" and depth == 0:
                before = code[match.end():i].rstrip()
                if re.search(r"=$|=\s*[\w:<>, ]*$|[\w>]\s*$", before) and not re.search(r"\)\s*(const)?\s*(noexcept)?$", before):
                    i = matching(code, i)  # an initialiser
                else:
                    body = True
                    break
            elif code[i] == ";" and depth == 0:
                break
            i += 1
        spans.append((match.start(), i))
        del body
    for match in re.finditer(r"\btemplate\s*<", code):
        depth = 0
        for i in range(match.end() - 1, len(code)):
            if code[i] == "<":
                depth += 1
            elif code[i] == ">":
                depth -= 1
                if depth == 0:
                    spans.append((match.start(), i + 1))
                    break
    return spans


class File:
    def __init__(self, path, name, mutants):
        self.name = name
        self.text = path.read_text()
        self.code = blank(self.text)
        self.spans = constant_spans(self.code)
        self.enclosing = enclosing_brackets(self.code)
        self.edits = []  # (begin, order, end, replacement)
        self.mutants = mutants

    def is_constant(self, at):
        return any(begin <= at < end for begin, end in self.spans)

    def add(self, kind, at, before, after, weight):
        number = len(self.mutants)
        self.mutants.append({"id": number, "file": self.name, "line": self.text.count("\n", 0, at) + 1, "kind": kind,
                             "before": " ".join(before.split()), "after": " ".join(after.split()), "weight": weight,
                             "behind": self.line_before(at)})
        return number

    def line_before(self, at):
        """The code that the line of `at` follows."""
        lines = self.code[:self.code.rfind("\n", 0, at) + 1].rstrip().rsplit("\n", 1)
        return " ".join(lines[-1].split())

    def insert(self, at, text, order=0):
        self.edits.append((at, order, at, text))

    def replace(self, begin, end, text):
        self.edits.append((begin, 0, end, text))

    # ---- Statements

    def statement_starts(self):
        """Where a statement of a function may begin: at the begin of a line, behind `{` or `if (...)` on a line."""
        for match in re.finditer(r"^([ \t]+)(?=\S)", self.code, re.M):
            at = match.end()
            while True:
                head = re.compile(r"(else )?(if|for|while) (?!constexpr)\(").match(self.code, at)
                if head is None:
                    head = re.compile(r"else (?!if)").match(self.code, at)
                    if head is not None:
                        at = head.end()
                        continue
                    break
                at = matching(self.code, head.end() - 1) + 1
                while at < len(self.code) and self.code[at] == " ":
                    at += 1
                if self.code[at] in "{\n":
                    at = -1
                    break
            if at > 0:
                yield at
            # Bodies of one line.
            end = self.code.find("\n", match.end())
            line = self.code[match.end():end]
            brace = re.search(r"\{ (?=[^{}]*; \}$)", line)
            if brace is not None:
                at = match.end() + brace.end()
                yield at

    def drop_statements(self):
        seen = set()
        for at in self.statement_starts():
            before = self.code[:at].rstrip()[-1:]
            if at in seen or self.is_constant(at) or self.enclosing[at] != "{" or not (
                    before in ";{})" or self.code[:at].endswith("else ")):
                continue
            seen.add(at)
            word = re.compile(r"\w+").match(self.code, at)
            if word is not None and word.group(0) in KEYWORDS:
                continue
            call = re.compile(r"(?:\(void\))?(?:this->)?[A-Za-z_][\w.:]*(?:->[\w.]+)*(?:\[[^\]\n]*\])?(?:(?:\.template |->template )\w+)?(?:<[\w:, .()]*>)?\(")
            change = re.compile(r"(?:\+\+|--)[\w.\->\[\]]+;|[A-Za-z_*][\w.:]*(?:->[\w.]+)*(?:\[[^\]\n]*\])*(?:\.\w+)* (?:[-+*|&^]|<<|>>)?= |[A-Za-z_][\w.]*\([^()\n]*\)\.\w+ \+?= ")
            found = call.match(self.code, at)
            if found is not None:
                close = matching(self.code, found.end() - 1)
                # Chains: a(...).b(...);
                while True:
                    chain = re.compile(r"(?:\.|->)\w+\(").match(self.code, close + 1)
                    if chain is None:
                        break
                    close = matching(self.code, chain.end() - 1)
                if self.code[close + 1:close + 2] == ";":
                    end = close + 2
                else:
                    found = None
            if found is None:
                found = change.match(self.code, at)
                if found is None:
                    continue
                end = at
                depth = 0
                while not (self.code[end] == ";" and depth == 0):
                    depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.code[end], 0)
                    if depth < 0:
                        break
                    end += 1
                if depth < 0:
                    continue
                end += 1
            statement = self.text[at:end]
            if HINTS.match(statement):
                continue
            kind = "drop-sync" if SYNC.search(statement.split("(")[0] + "(") else "drop"
            number = self.add(kind, at, statement, "", 0 if kind == "drop-sync" else 1)
            self.insert(at, f"SOLITON_UNLESS({number}) ", -1)

    # ---- Expressions

    def force_conditions(self):
        for match in re.finditer(r"\b(if|while) \(", self.code):
            if self.is_constant(match.start()):
                continue
            open_ = match.end() - 1
            close = matching(self.code, open_)
            condition = self.text[open_ + 1:close]
            if ";" in self.code[open_:close]:
                continue
            always = self.add("always", match.start(), condition, "true", 1) if match.group(1) == "if" else None
            never = self.add("never", match.start(), condition, "false", 1)
            prefix = f"!soliton_mutant({never}) && (" + (f"soliton_mutant({always}) || (" if always is not None else "")
            self.insert(open_ + 1, prefix, 5)
            self.insert(close, "))" if always is not None else ")", -5)

    def relations(self):
        for match in re.finditer(r" (<=|>=|==|!=|<|>) ", self.code):
            at = match.start() + 1
            if self.is_constant(at) or "operator" in self.code[max(0, at - 12):at]:
                continue
            symbol = match.group(1)
            number = self.add("compare", at, self.context(at), f"{symbol} -> {SHIFTED[symbol]}", 1)
            infix = "==" if symbol in ("==", "!=") else "<"
            self.replace(at, at + len(symbol),
                         f"{infix} soliton_mutants::Relation<{number}, soliton_mutants::{RELATIONS[symbol]}, "
                         f"soliton_mutants::{RELATIONS[SHIFTED[symbol]]}>{{}} {infix}")

    def context(self, at):
        begin = self.code.rfind("\n", 0, at) + 1
        end = self.code.find("\n", at)
        return self.text[begin:end].strip()

    def sums(self):
        for match in re.finditer(r"(?<=[\w)\]]) ([-+%]) (?=[\w(*])", self.code):
            at = match.start() + 1
            if self.is_constant(at):
                continue
            symbol = match.group(1)
            # A default argument or a template's argument is no place for it.
            to = {"+": "-", "-": "+", "%": "/"}[symbol]
            number = self.add("shift", at, self.context(at), f"{symbol} -> {to}", 2)
            infix = "*" if symbol == "%" else "+"
            name = {"+": "Plus", "-": "Minus", "%": "Rest"}[symbol]
            self.replace(at, at + 1, f"{infix} soliton_mutants::{name}<{number}>{{}} {infix}")

    def parities(self):
        for match in re.finditer(r" & 1(?=[,;)])", self.code):
            if self.is_constant(match.start()):
                continue
            number = self.add("parity", match.start(), self.context(match.start()), "other parity", 0)
            self.insert(match.end(), f" ^ soliton_mutant({number})", 3)
        for match in re.finditer(r"\b[\w.]*parity\w*\(\)(?=[,;)])", self.code):
            if self.is_constant(match.start()) or re.search(r"SOLITON_DEVICE[^\n]*$", self.code[:match.start()].split("\n")[-1]):
                continue
            number = self.add("parity", match.start(), self.context(match.start()), "other parity", 0)
            self.insert(match.start(), "(", 1)
            self.insert(match.end(), f" ^ soliton_mutant({number}))", 3)

    def connectives(self):
        for match in re.finditer(r"(?<=\S) (&&|\|\|) (?=\S)", self.code):
            at = match.start() + 1
            if self.is_constant(at):
                continue
            begin = match.end()
            depth = 0
            end = begin
            while end < len(self.code):
                c = self.code[end]
                if depth == 0 and (c in ";,?:)]}" and not self.code.startswith("::", end) and self.code[end - 1:end + 1] != "::"
                                   or self.code.startswith(" && ", end) or self.code.startswith(" || ", end)):
                    break
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(c, 0)
                end += 1
            operand = self.text[begin:end]
            if operand.startswith("!") is False and re.search(r" [<>]=? ", operand) and "<" in operand.split(" ")[0]:
                pass
            symbol = match.group(1)
            number = self.add("connective", at, self.context(at), f"without {operand}", 1)
            test = f"soliton_mutant({number}) || (" if symbol == "&&" else f"!soliton_mutant({number}) && ("
            self.insert(begin, "(" + test, 4)
            self.insert(end, "))", -4)

    def mutated(self):
        self.drop_statements()
        self.parities()
        self.force_conditions()
        self.connectives()
        self.relations()
        self.sums()
        text = self.text
        for begin, order, end, replacement in sorted(self.edits, key=lambda e: (e[0], e[1]), reverse=True):
            text = text[:begin] + replacement + text[end:]
        return text


def main():
    templates, output = Path(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(output / "templates", ignore_errors=True)
    shutil.copytree(templates, output / "templates")
    mutants = []
    for pattern in FILES:
        for path in sorted(templates.glob(pattern)):
            name = str(path.relative_to(templates))
            if name in SKIPPED:
                continue
            (output / "templates" / name).write_text(File(path, name, mutants).mutated())
    (output / "mutants.json").write_text(json.dumps(mutants, indent=0))
    (output / "mutant_count.h").write_text(f"#define SOLITON_NUM_MUTANTS {len(mutants)}\n")
    kinds = {}
    for mutant in mutants:
        kinds[mutant["kind"]] = kinds.get(mutant["kind"], 0) + 1
    print(len(mutants), "mutants:", ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))


if __name__ == "__main__":
    main()
