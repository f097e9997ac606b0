"""Random sources in the part of Jinja that chat templates use, most of which mean something."""

import random

VARIABLES = {
    "text": "Hello, Wörld! ",
    "lines": "one\n two\r\n\nthree",
    "quotes": "it's \"q\" \\ \t\u00a0",
    "empty": "",
    "number": 7,
    "negative": -3,
    "ratio": 2.5,
    "tiny": 1e-7,
    "huge": 1e16,
    "yes": True,
    "nothing": None,
    "words": ["pear", "Apple", "fig", "apple"],
    "numbers": [3, 1, 2.5, -1],
    "mixed": [1, "a", None, True, [2, 3]],
    "none_list": [],
    "tree": [1, [2, [3, "x"], []], "y"],
    "html": "<b class='x'>A & \"B\"</b>",
    "person": {"name": "Ann", "age": 30, "items": ["x"], "tags": {"b": 1, "a": 2}},
    "messages": [
        {"role": "user", "content": " hi "},
        {"role": "assistant", "content": "yo", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
        {"role": "user", "content": ""},
    ],
}

ATOMS = [
    *VARIABLES, *VARIABLES, "missing", "true", "false", "none", "0", "1", "2", "-1", "3", "10", "0.5", "1.0", "1e3",
    "'a'", "'b'", "','", "''", "' '", "'Hello'", "'%s-%d'", "'{} {0}'", "'\\n'", "[1, 2, 3]", "['x', 'y']", "[]",
    "{}", "{'a': 1, 'b': [2]}", "(1, 2)", "('z',)", "()", "range(3)", "range(5, 0, -2)", "person.name",
    "person['age']", "person.tags", "messages[0]", "messages[-1].content", "messages|first", "words[1]",
    "messages[1].tool_calls[0].function", "dict(a=1, b=2)", "namespace(a=1).a", "person['items']", "html|safe", "'<i>%s</i>{}'|safe", "html|escape", "'&'|e", "messages|groupby('role')",
]
FILTERS = [
    "trim", "trim('Hx ')", "length", "count", "upper", "lower", "title", "capitalize", "first", "last", "list", "string",
    "int", "int(5)", "float", "float(0.5)", "abs", "round", "round(1)", "round(2, 'floor')", "round(0, 'ceil')", "tojson",
    "tojson(indent=2)", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "join",
    "join(', ')", "join('-', attribute='role')", "default('d')", "default('d', true)", "d(1)", "replace('l', 'LL')",
    "replace('', '-', 2)", "reverse", "reverse|list", "sort", "sort(reverse=true)", "sort(case_sensitive=true)",
    "sort(attribute='role')", "unique|list", "unique(true)|join", "map('upper')|list", "map('string')|join('+')",
    "map(attribute='role')|list", "map(attribute='x.0', default='?')|list", "select|list", "select('string')|list",
    "select('number')|join(',')", "reject('none')|list", "selectattr('role', 'equalto', 'user')|list",
    "rejectattr('tool_calls', 'defined')|map(attribute='content')|list", "selectattr('role')|list|length", "items|list",
    "dictsort", "dictsort(by='value')", "dictsort(reverse=true)|list", "indent", "indent(2, true)", "indent('> ', blank=true)",
    "max", "min", "sum", "sum(start=1)", "center(12)", "format(1, 2)", "format('q')", "truncate(7)",
    "truncate(6, true, '~')", "map('length')|list", "map('trim')|list",
    "groupby('role')", "groupby('role')|map(attribute='list')|list", "groupby('role', default='-')|map(attribute='grouper')|list",
    "groupby('name', case_sensitive=true)", "groupby(0)|list", "groupby('content')|first", "batch(2)|list", "batch(3, '-')|list",
    "batch(0)|list", "slice(2)|list", "slice(3, '-')|list", "slice(5)|map('join', '+')|list", "safe", "safe", "escape", "e",
    "forceescape", "urlencode", "items|list|urlencode", "safe|upper", "safe|title", "safe|last", "safe|list", "safe|string",
    "safe|indent(1, true)", "safe|truncate(5, true, '<')", "safe|replace('b', '<')", "safe|join('<')", "safe|trim('<')",
    "safe|format('<')", "safe|reverse", "safe|center(40)", "safe|tojson", "safe|capitalize", "safe|lower|urlencode",
]
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "iterable", "sequence", "boolean",
    "true", "false", "equalto(1)", "eq('a')", "ne(2)", "in([1, 'a', none])", "in 'abc'", "gt(1)", "lt(2.5)", "ge 2",
    "le(3)", "divisibleby(2)", "odd", "even", "lower", "upper", "callable", "sameas(true)", "sameas none", "divisibleby 3", "escaped", "escaped",
]
METHODS = [
    ".split()", ".split(',')", ".split(' ', 1)", ".split(None, 1)", ".rsplit(' ', 1)", ".rsplit(None, 1)", ".split('l')[-1]",
    ".strip()", ".strip('H!')", ".lstrip()", ".rstrip('\\n ')", ".startswith('H')", ".endswith(('a', ' '))", ".replace('l', '1')",
    ".replace('o', '0', 1)", ".upper()", ".lower()", ".title()", ".capitalize()", ".find('l')", ".rfind('l')", ".count('l')",
    ".index('e')", ".join(['a', 'b'])", ".join(words)", ".format(1, 'b')", ".format(number, x=2)", ".splitlines()",
    ".splitlines(true)", ".partition(',')", ".rpartition('l')", ".isdigit()", ".isspace()", ".isupper()", ".islower()",
    ".isalpha()", ".removeprefix('He')", ".removesuffix(' ')", ".ljust(5, '.')", ".rjust(6)", ".center(9, '*')", ".items()",
    ".keys()", ".values()", ".items()|list", ".get('name')", ".get('zzz', 5)", ".get(1)", ".keys()|list", ".values()|list",
    ".index(1)", ".count(1)", ".name", ".role", ".content", ".missing", ".0", ".append(1)", ".pop()", ".update({})", ".x.y", ".real", ".imag", ".numerator", ".denominator", ".grouper", ".list", ".format('<')",
    ".join(['<', '>', html|safe])", ".replace('b', '<')", ".center(41, '<')",
]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or", "~", "+"]
SUBSCRIPTS = ["[0]", "[-1]", "[1]", "['a']", "['name']", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[3:1:-1]", "[:1]", "[9]",
              "[none:2]", "[1:9:3]", "[true]", "[0.5]", "['items']", "[::0]", "[5:-9:-2]"]


class Sources:
    def __init__(self, generator):
        self.random = generator

    def expression(self, depth):
        if depth <= 0:
            return self.random.choice(ATOMS)
        kind = self.random.randrange(14)
        inner = self.expression(depth - 1)
        if kind < 4:
            return f"{self.wrapped(inner)}|{self.random.choice(FILTERS)}"
        if kind == 4:
            return f"{self.wrapped(inner)} is {self.random.choice(['', 'not '])}{self.random.choice(TESTS)}"
        if kind in (5, 6):
            return f"{self.wrapped(inner)}{self.random.choice(METHODS)}"
        if kind == 7:
            subscript = self.random.choice(SUBSCRIPTS)
            # jinja2 computes constants beforehand, and there a slice that fails is undefined.
            is_constant = " if " in inner or not inner.lstrip("(").startswith(tuple(VARIABLES))
            return f"{self.wrapped(inner)}{'[0]' if is_constant and ':' in subscript else subscript}"
        other = self.expression(self.random.randrange(depth))
        if kind in (8, 9, 10):
            operator = self.random.choice(BINARY)
            # As it is, without parentheses, to see precedence too.
            return f"{inner} {operator} {other}" if self.random.random() < 0.5 else f"({inner}) {operator} ({other})"
        if kind == 11:
            return f"{inner} if {other} else {self.expression(0)}" if self.random.random() < 0.8 else f"{inner} if {other}"
        if kind == 12:
            return self.random.choice([f"not {inner}", f"-{self.wrapped(inner)}", f"[{inner}, {other}]", f"({inner},)",
                                       f"{{{other}: {inner}}}", f"{inner} < {other} <= {self.expression(0)}",
                                       f"dict(a={inner})", f"'%s|%r' % ({inner}, {other})", f"'{{:>5}}'.format({inner})"])
        return f"({inner})"

    def wrapped(self, inner):
        return inner if inner.replace("_", "").isalnum() and not inner[0].isdigit() else f"({inner})"

    def statement(self, depth):
        e = lambda: self.expression(self.random.randrange(3))
        body = lambda: self.template(depth - 1)
        space = lambda: self.random.choice(["", "", "-", "+"])
        begin, end = lambda: "{%" + space() + " ", lambda: " " + self.random.choice(["", "", "-", "+"]) + "%}"
        kind = self.random.randrange(12) if depth > 0 else self.random.randrange(3)
        if kind <= 1:
            return "{{" + self.random.choice(["", "-", ""]) + " " + e() + " " + self.random.choice(["", "-", ""]) + "}}"
        if kind == 2:
            return self.random.choice([" \n ", "text", "\n", "  ", "{# c #}\n", " {#- c -#} ", "a\n\tb "])
        if kind == 3:
            tag = self.random.choice(["", f"{begin()}else{end()}{body()}", f"{begin()}elif {e()}{end()}{body()}"])
            return f"{begin()}if {e()}{end()}{body()}{tag}{begin()}endif{end()}"
        if kind in (4, 5):
            shown = self.random.choice(["{{ loop.index }}", "{{ x }}", "{{ loop.last }}{{ loop.length }}", "{{ loop.previtem }}",
                                        "{{ loop.nextitem is defined }}", "{{ loop.revindex0 }}", "{{ loop.cycle('a', 'b') }}",
                                        "{% if loop.index > 1 %}{% break %}{% endif %}", "{% if x %}{% continue %}{% endif %}.",
                                        "{% set s = x %}", "{% set ns.v = ns.v ~ loop.index %}", "{{ loop.changed(x) }}"])
            condition = self.random.choice(["", "", f" if {e()}", " if x is string"])
            other = self.random.choice(["", f"{begin()}else{end()}{body()}"])
            targets = self.random.choice(["x", "x", "x", "x, s"])
            return (f"{begin()}for {targets} in {e()}{condition}{end()}{shown}{body()}{other}{begin()}endfor{end()}")
        if kind == 6:
            return f"{begin()}set {self.random.choice(['s', 's', 'number', 'ns.v', 's, x'])} = {e()}{end()}"
        if kind == 7:
            return f"{begin()}set s{self.random.choice(['', ' | upper', '|trim|length'])}{end()}{body()}{begin()}endset{end()}[{{{{ s }}}}]"
        if kind == 8:
            default = self.random.choice(["", f"={e()}"])
            call = self.random.choice([f"m({e()})", "m()", f"m({e()}, b={e()})", f"m(b={e()}, a=1)"])
            return f"{begin()}macro m(a{default}, b=2){end()}{{{{ a }}}},{{{{ b }}}}{body()}{begin()}endmacro{end()}{{{{ {call} }}}}"
        if kind == 9:
            deeper = "{% if x is sequence and x is not string and x is not mapping %}<{{ loop(x) }}>{% endif %}"
            condition = self.random.choice(["", "", " if x"])
            return (f"{begin()}for x in {self.random.choice(['tree', 'tree', 'mixed', e()])}{condition} recursive{end()}"
                    f"{{{{ loop.depth }}}}{{{{ loop.depth0 ~ loop.index }}}}{deeper}{body()}{begin()}endfor{end()}")
        if kind == 10:
            shown = self.random.choice(["{{ varargs }}", "{{ kwargs }}", "{{ varargs }}{{ kwargs }}", "{{ caller }}", "{{ caller() }}",
                                        "{{ caller(1, b=a) }}", "{% if caller %}{{ caller('<') }}{% endif %}", "{{ varargs|length }}{{ caller() }}"])
            given = self.random.choice(["", f"{e()}", f"1, {e()}, 3", f"b={e()}", "1, 2, z=3", "*words", "1, **person", "*[1], **{'b': 2}",
                                        f"**{e()}", f"*{e()}", "1, a=2"])
            macro = f"{begin()}macro m(a, b=2){end()}{{{{ a }}}},{{{{ b }}}}{shown}{begin()}endmacro{end()}"
            asked = self.random.choice(["", "", "{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m }}"])
            parameters = self.random.choice(["", "", "(x)", "(x, y=3)"])
            block = f"{begin()}call{parameters} m({given}){end()}[{{{{ x }}}}{body()}]{begin()}endcall{end()}"
            return macro + asked + self.random.choice([f"{{{{ m({given}) }}}}", block])
        return self.random.choice([f"{begin()}with s = {e()}{end()}{{{{ s }}}}{body()}{begin()}endwith{end()}",
                                   f"{begin()}filter upper{end()}{body()}{begin()}endfilter{end()}",
                                   f"{begin()}generation{end()}{body()}{begin()}endgeneration{end()}"])

    def template(self, depth):
        return "".join(self.statement(depth) for _ in range(self.random.randrange(1, 4)))


def random_sources(seed):
    sources = Sources(random.Random(seed))
    while True:
        if sources.random.random() < 0.7:
            yield "{{ " + sources.expression(sources.random.randrange(1, 4)) + " }}"
        else:
            yield "{% set ns = namespace(v='') %}" + sources.template(2) + "{{ s }}{{ ns.v }}"
