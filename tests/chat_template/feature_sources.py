"""Sources that show one thing each, with the variables of random_expressions: what random ones meet too seldom."""

CASES = ["ß", "ﬁn ﬃ", "ŉa", "ǆ ǅ Ǆ", "ΐ ᾳ ᾼ ῷ", "ΑΣ", "ΑΣ Σ ΑΣΑ", "Α.Σ Α'Σ' ΑΣ.Α ΑΣ\u0301", "ΣΑΣ-ΣΑΣ(ΣΣ", "İI ıi", "აბ ᲐᲑ", "東a a東b 1a", "don't x'Y z",
         "ªa ʰb ⅷc ⓐd", "և ﬔ", "ẞ ſ K", "𝒜a 𐐀𐐨"]
MAPPINGS = [".upper()", ".lower()", ".title()", ".capitalize()", "|upper", "|lower", "|title", "|capitalize"]

SOURCES = [
    *[f"{{{{ '{case}'{mapping} }}}}".replace("'don't", '"don\'t').replace("Y z'", 'Y z"').replace("'Α.Σ", '"Α.Σ').replace("ΑΣ\u0301'", 'ΑΣ\u0301"')
      for case in CASES for mapping in MAPPINGS],
    # Groups and parts of lists.
    "{% for g in messages|groupby('role') %}{{ g.grouper }}:{{ g.list|length }}{{ g[0] }}{{ g|length }} {% endfor %}",
    "{% for role, said in messages|groupby('role') %}{{ role }}={{ said|map(attribute='content')|join('+') }};{% endfor %}",
    "{{ [{'a': 'B', 'n': 1}, {'a': 'b', 'n': 2}, {'a': 'A', 'n': 3}]|groupby('a') }}",
    "{{ [{'a': 'B', 'n': 1}, {'a': 'b', 'n': 2}, {'a': 'A', 'n': 3}]|groupby('a', case_sensitive=true) }}",
    "{{ [{'a': 1}, {}]|groupby('a', default=9) }}", "{{ [{'a': 1}, {}]|groupby('a') }}", "{{ [[1, 2], [1, 3]]|groupby(0) }}",
    "{{ [{'a': {'b': 2}}, {'a': {'b': 1}}]|groupby('a.b')|map('first')|list }}", "{{ []|groupby('a') }}", "{{ 5|groupby('a') }}",
    "{{ [1, 2]|groupby }}", "{{ (messages|groupby('role'))[0] is sequence }}", "{{ (messages|groupby('role'))[0].missing }}",
    "{{ range(7)|batch(3)|list }}", "{{ range(7)|batch(3, '-')|list }}", "{{ range(3)|batch(5, none)|list }}", "{{ []|batch(2, 1)|list }}",
    "{{ range(4)|batch(0)|list }}", "{{ range(2)|batch(-1)|list }}", "{{ 'abcde'|batch(2)|map('join')|list }}", "{{ range(7)|batch }}",
    "{{ range(7)|slice(3)|list }}", "{{ range(7)|slice(3, '-')|list }}", "{{ range(2)|slice(4, 0)|list }}", "{{ range(6)|slice(3, 'x')|list }}",
    "{{ range(2)|slice(-1)|list }}", "{{ range(2)|slice(0)|list }}", "{{ []|slice(2)|list }}",
    # Text for addresses and for HTML.
    "{{ 'a b/ü&=?~_.-'|urlencode }}", "{{ {'a b': 'x/y', 'ü': 1}|urlencode }}", "{{ [('a', 1), ('b', '&')]|urlencode }}", "{{ 5|urlencode }}",
    "{{ none|urlencode }}", "{{ missing|urlencode }}|", "{{ [1]|urlencode }}", "{{ ''|urlencode }}",
    "{{ html|escape }}", "{{ html|e }}", "{{ html|e|e }}", "{{ html|e|forceescape }}", "{{ 5|e }}{{ none|e }}{{ missing|e }}{{ [html]|e }}",
    "{{ html|safe }}", "{{ html|safe + '<' }}", "{{ '<' + html|safe }}", "{{ ('<' + (html|safe)) is escaped }}", "{{ html is escaped }}",
    "{{ (html|safe) ~ '<' }}", "{{ ((html|safe) ~ '<') is escaped }}", "{{ ('<b>'|safe) * 2 + '>' }}", "{{ 2 * ('<b>'|safe) + '>' }}",
    "{{ ('<b>%s</b>'|safe) % '<' }}", "{{ ('<b>%s %r %d</b>'|safe) % ('<', '<', 5) }}", "{{ ('%(a)s'|safe) % {'a': '<'} }}",
    "{{ ('%5s|%.3s'|safe) % ('<', '<') }}", "{{ ('%s'|safe) % ('<'|safe) }}", "{{ ('%x'|safe) % 5 }}", "{{ ('%s'|safe) % [1, '<'] }}",
    "{{ ('<b>{}</b>'|safe).format('<') }}", "{{ ('{}{!r}{!s}'|safe).format('<'|safe, '<'|safe, '<'|safe) }}", "{{ ('{:>5}'|safe).format('<') }}",
    "{{ ('{:>5}'|safe).format('<'|safe) }}", "{{ ('{a}'|safe).format(a=[html]) }}", "{{ '{}'.format('<'|safe) is escaped }}",
    "{{ ('<'|safe).join(['>', '>'|safe, 5]) }}", "{{ ','.join(['>'|safe, '<']) is escaped }}", "{{ ['>', '<'|safe]|join('&'|safe) }}",
    "{{ ('a<b'|safe).replace('b', '<') }}", "{{ ('a<b'|safe)|replace('b', '<') }}", "{{ ('a'|safe).center(5, '<') }}", "{{ ('a'|safe).center(5, '*') + '<' }}",
    "{{ (('a,<'|safe).split(',')[1] + '<') }}", "{{ ('a<b'|safe).partition('<')[1] + '<' }}", "{{ ('<a'|safe)[0] + '<' }}", "{{ ('<a'|safe)[:1] + '<' }}",
    "{{ ('<a'|safe)|first + '<' }}", "{{ ('<a'|safe)|last + '<' }}", "{{ ('<a'|safe)|reverse + '<' }}", "{{ ('<a'|safe)|list }}",
    "{% for c in '<a'|safe %}{{ c + '<' }}{% endfor %}", "{{ ('<a '|safe)|trim + '<' }}", "{{ ('<a'|safe)|upper + '<' }}", "{{ ('<a'|safe)|lower + '<' }}",
    "{{ ('<a'|safe)|title + '<' }}", "{{ ('<a'|safe).title() + '<' }}", "{{ ('<a'|safe)|capitalize + '<' }}", "{{ ('<a'|safe)|string + '<' }}",
    "{{ ('<a'|safe)|indent + '<' }}", "{{ ('<a\n<b'|safe)|indent('<', true) }}", "{{ ('<a bcdef gh'|safe)|truncate(6, end='<', leeway=0) }}",
    "{{ ('<a'|safe)|center(7) + '<' }}", "{{ ('%s<'|safe)|format('<') }}", "{{ ('<a'|safe)|default('b') + '<' }}", "{{ [('<a'|safe)] }}",
    "{{ {'k': '<a'|safe} }}", "{{ ('<a'|safe)|tojson }}", "{{ ('<a'|safe) == '<a' }}", "{{ {'<a': 1}['<a'|safe] }}", "{{ '<' in ('<a'|safe) }}",
    "{{ 5|safe + '<' }}", "{{ none|safe + '<' }}", "{{ missing|safe + '<' }}", "{{ ('<'|safe) + 5 }}", "{% set x %}<{% endset %}{{ x is escaped }}",
    "{% macro m() %}<{% endmacro %}{{ m() is escaped }}{{ m()|safe is escaped }}", "{{ (('<'|safe).startswith('<')) }}", "{{ ('<'|safe).missing }}",
    "{{ ('a b'|safe)|urlencode is escaped }}", "{{ ('<'|safe) is string }}{{ ('<'|safe)|length }}", "{{ ['<'|safe, '<']|unique|list }}",
    # Loops that call themselves.
    "{% for x in tree recursive %}{{ loop.depth }}{% if x is sequence and x is not string %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in tree recursive %}{{ loop.depth0 }}{{ loop.index }}/{{ loop.length }}{% if x is sequence and x is not string %}({{ loop(x) }}){% endif %}"
    "{% if loop.first %}{% continue %}{% endif %};{% else %}none{% endfor %}",
    "{% for x in [[], [[]]] recursive %}<{{ loop(x) }}>{% else %}-{% endfor %}", "{% for x in tree if x is not string recursive %}{{ x }},{% endfor %}",
    "{% set s = 1 %}{% for x in [[2], []] recursive %}{{ s }}{% set s = s + 1 %}{{ s }}{{ loop(x) if x is sequence }}{% endfor %}{{ s }}",
    "{% for x in [1] %}{{ loop(x) }}{% endfor %}", "{% for x in [[1]] recursive %}{% for y in x %}{{ loop([y]) }}{% endfor %}{% endfor %}",
    "{% for x in [[1]] recursive %}{% set outer = loop %}{% for y in [0] %}{{ outer(x) if x is sequence else x }}{% endfor %}{% endfor %}",
    "{% for x in [1, 2] recursive %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [[1]] recursive %}{{ loop() }}{% endfor %}",
    # Macros that take more, and what they say of themselves.
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(1, x=2, y='<') }}{{ m() }}{{ m(a=1, b=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2) }}{{ m(1, x=2) }}", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}", "{{ varargs }}|{{ kwargs is defined }}",
    "{% macro m(varargs) %}{{ varargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}", "{% macro m(a) %}{% if false %}{{ varargs }}{% endif %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a, b=3) %}{{ a }}{{ b }}{{ varargs }}{% endmacro %}{{ m(*[1, 2, 4]) }}{{ m(*[1], **{'b': 2}) }}{{ m(1, *'xy') }}{{ m(b=1, *[2]) }}",
    "{% macro o(a) %}[{{ a }}{{ kwargs }}]{% endmacro %}{% macro m() %}{{ o(*varargs, **kwargs) }}{% endmacro %}{{ m(1, x=2) }}",
    "{{ dict(**{'a': 1}) }}{{ dict(a=1, **{'b': 2}) }}{{ '{}{x}'.format(*[1], **{'x': 2}) }}", "{{ dict(a=1, **{'a': 2}) }}", "{{ dict(**[1]) }}", "{{ range(*[1, 3])|list }}",
    "{{ 'abc'|replace(*['b', 'x']) }}", "{{ 5 is divisibleby(*[5]) }}", "{{ dict(**{'a': 1}, b=2) }}", "{{ range(*[1], 3) }}", "{{ range(*5) }}",
    "{% macro m(a, b=2) %}{{ caller() }}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}{{ m.catch_varargs }}{{ m.catch_kwargs }}{{ m.caller }}{{ m.missing }}",
    "{% macro m(a, b=2) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m.catch_varargs }}{{ m.catch_kwargs }}{{ m.caller }}{{ m.explicit_caller }}{{ [m] }}",
    "{% macro m() %}{{ caller }}{{ caller.name }}{{ caller.arguments }}{% endmacro %}{% call(x) m() %}{% endcall %}{{ m() }}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}{{ m(caller=none) }}", "{% macro m() %}{% endmacro %}{% call m() %}x{% endcall %}",
    "{% macro m(caller=5) %}{{ caller }}{% endmacro %}{{ m() }}{{ m(6) }}{% call m() %}x{% endcall %}", "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% macro o() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{% call o() %}x{% endcall %}",
    # Numbers are complex, or fractions.
    "{{ (5).real }}{{ 5.5.real }}{{ true.real }}{{ (5).imag }}{{ 2.5.imag }}{{ number.numerator }}{{ number.denominator }}{{ ratio.numerator }}{{ yes.imag }}",
    "{{ number.missing }}{{ number['real'] }}", "{{ number|attr('real') }}{{ [1, 2.5]|map(attribute='real')|list }}",
]
