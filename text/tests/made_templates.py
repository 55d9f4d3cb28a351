#!/usr/bin/env python3
"""Renders chat templates by Jinja2, as transformers sets it up, for `tests/templates.rs`.

    pip install jinja2
    python3 made_templates.py data/templates.json             # the templates below
    python3 made_templates.py OUT.json --folder FOLDER        # those of a folder (*.jinja); then HALITE_TEMPLATES=OUT.json cargo test …
"""

import argparse
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

CONVERSATIONS = {
    "user": [("user", "Hello there")],
    "system": [("system", "  Be brief. "), ("user", "Hi\n"), ("assistant", "Yes?"), ("user", "What is 1<2 & 'x'?")],
    "think": [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb "), ("user", "c")],
    "tool": [("user", "a"), ("assistant", "b"), ("tool", "42"), ("user", "d")],
    "twice": [("user", "a"), ("user", "b")],
    "empty": [],
    "letters": [("system", ""), ("user", "Grüße 中文 😀")],
}

# One expression each, printed.
EXPRESSIONS = r"""
1 + 2 * 3 - 4
2 ** 3 ** 2
-2 ** 2
7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 // -2
7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3 ~ ' ' ~ 7.5 % 2
1 / 2 ~ ' ' ~ 4 / 2
1e16 ~ ' ' ~ 1.5e-7 ~ ' ' ~ 0.1 ~ ' ' ~ 100.0 ~ ' ' ~ 123456789012345680.0
1_000 + 1
true + 1
'a' * 3 ~ [1, 2] * 2 ~ 2 * 'b' ~ [1] * -1
[1] + [2, 'x', none, true, 1.0]
(1, 2) + (3,)
(1,) ~ () ~ (1, (2,))
{'a': 1, 'b': [1, {'c': none}], 3: 'd'}
'a' "b" 'c'
'\n\t\\\'\"\x41\u00e9\q' | tojson
['it\'s', "\"", "a\nb", 'é', '\x07']
1 < 2 < 3
1 < 3 < 2
1 == 1.0 == true
'a' < 'b' and [1, 2] < [1, 3]
'a' in 'cat' and 'x' not in ['y'] and 'k' in {'k': 1}
not 1 == 2
not false and true
0 or '' or 'last'
1 and 0 and 2
'yes' if 1 else 'no'
'yes' if 0
'a' if 0 else 'b' if 0 else 'c'
nothing is defined
nothing | default('x')
'' | default('x', true)
none | default('x')
nothing.more is defined
nothing
[nothing]
messages[0].role ~ messages[-1]['content']
messages[0].nothing is undefined
messages[99] is defined
messages | length
'grüße'[1] ~ 'grüße'[-1] ~ 'abc'[5]
'abcdef'[1:3] ~ 'abcdef'[:-2] ~ 'abcdef'[::-1] ~ 'abcdef'[4:1:-2] ~ 'abcdef'[10:] ~ 'abc'[-10:2]
[1, 2, 3, 4][1:] ~ [1, 2, 3, 4][::-1] ~ [1, 2, 3][::2] ~ (1, 2, 3)[:2]
[1, 2, 3, 4][-1:0:-1] ~ [1, 2][5:] ~ [1, 2][:-9]
range(3) | list ~ range(1, 4) | list ~ range(5, 0, -2) | list ~ range(0) | list
dict(a=1, b='c') ~ dict({'x': 1}, y=2)
1 is odd ~ 2 is even ~ 9 is divisibleby 3 ~ 9 is divisibleby(2)
'a' is string ~ 1 is number ~ 1 is integer ~ 1.0 is float ~ {} is mapping ~ [] is sequence ~ [] is iterable ~ true is boolean
none is none ~ none is not none ~ nothing is undefined ~ 1 is defined
true is true ~ 1 is true ~ false is false
'x' is in ['x'] ~ 1 is eq 1 ~ 1 is ne 2 ~ 1 is lt 2 ~ 1 is sameas 1 ~ 2 is ge(2)
'ab' is lower ~ 'AB' is upper ~ 'a1' is upper
1 is string or 'a' is string
'a' ~ 1 is string ~ 'b'
'Hello World'.upper() ~ 'Hello World'.lower() ~ 'hello world'.title() ~ 'hELLO wORLD'.capitalize() ~ 'aB'.swapcase()
'  x '.strip() ~ '|' ~ '  x '.lstrip() ~ '|' ~ '  x '.rstrip() ~ '|' ~ 'xxaxx'.strip('x') ~ '|' ~ 'abcba'.lstrip('ab') ~ '|' ~ 'a\n'.rstrip('\n')
'a,b,,c'.split(',') ~ ' a  b c '.split() ~ 'a-b-c'.split('-', 1) ~ 'a-b-c'.rsplit('-', 1) ~ ' a b  c '.split(none, 1)
'a\nb\r\nc'.splitlines() ~ 'a\n'.splitlines(true)
'aXbXc'.replace('X', '-') ~ 'aXbXc'.replace('X', '-', 1) ~ 'abc'.replace('', '.')
'hello'.startswith('he') ~ 'hello'.endswith('lo') ~ 'hello'.startswith(('x', 'h')) ~ 'hello'.endswith('x')
'hello'.find('l') ~ 'hello'.rfind('l') ~ 'hello'.find('z') ~ 'hello'.count('l') ~ 'grüße'.find('e') ~ 'hello'.index('e')
', '.join(['a', 'b']) ~ '-'.join('abc')
'7'.zfill(3) ~ 'a'.center(5) ~ '|' ~ 'ab'.center(5, '*') ~ 'a'.ljust(3) ~ '|' ~ 'a'.rjust(3)
'12'.isdigit() ~ 'a1'.isalnum() ~ 'ab'.isalpha() ~ ' '.isspace() ~ 'Ab'.isupper() ~ 'ab'.islower() ~ ''.isdigit()
'prefix-x'.removeprefix('prefix-') ~ 'x.txt'.removesuffix('.txt')
'{} and {}'.format(1, 'b') ~ '{1}{0}{x}{{}}'.format('a', 'b', x=2)
'%s is %d, 100%%' | format('a', 3)
{'a': 1}.get('a') ~ {'a': 1}.get('b') ~ {'a': 1}.get('b', 2)
{'a': 1, 'b': 2}.items() | list ~ {'a': 1}.keys() | list ~ {'a': 1}.values() | list
{'a': {'b': [1, 2]}}.a.b[1]
'abc' | upper | lower | length
'a b c' | wordcount ~ 'hello' | capitalize ~ 'hello world' | title
'  x ' | trim ~ 'xax' | trim('x')
'aXbX' | replace('X', '-') ~ 'aXbX' | replace('X', '-', 1)
['a', 'b', 1, none] | join(', ') ~ [1, 2] | join ~ 'abc' | join('-')
[{'a': 1}, {'a': 2}] | join('|', attribute='a')
[3, 1, 2] | sort ~ [3, 1, 2] | sort(reverse=true) ~ ['b', 'A', 'c'] | sort ~ ['b', 'A', 'c'] | sort(case_sensitive=true)
[{'n': 2}, {'n': 1}] | sort(attribute='n')
{'b': 1, 'A': 2, 'c': 0} | dictsort ~ {'b': 1, 'A': 2} | dictsort(by='value') ~ {'a': 1, 'b': 2} | dictsort(reverse=true)
[1, 2, 1, 'a', 'A'] | unique | list
[3, 1, 2] | min ~ [3, 1, 2] | max ~ [3, 1, 2] | sum ~ ['b', 'A'] | min
[{'n': 2}, {'n': 3}] | sum(attribute='n') ~ [1] | sum(start=10)
[1, 2, 3] | first ~ [1, 2, 3] | last ~ [1, 2] | reverse | list ~ 'abc' | reverse ~ 'abc' | first
'abc' | list ~ {'a': 1} | list ~ (1, 2) | list
{'a': 1} | items | list
[1, 2, 3, 4, 5] | batch(2) | list ~ [1, 2, 3] | batch(2, 0) | list
[1, 2, 3, 4, 5] | slice(2) | list ~ [1, 2, 3] | slice(2, 'x') | list
[0, 1, '', 'a'] | select | list ~ [0, 1] | reject | list ~ [1, 2, 3] | select('odd') | list ~ [1, 2, 3] | select('gt', 1) | list
[1, 2, 3] | reject('equalto', 2) | list
messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list
messages | rejectattr('role', 'in', ['system', 'tool']) | list | length
messages | selectattr('nothing') | list ~ messages | selectattr('role') | list | length
none | selectattr('a') | list ~ none | map('upper') | list
['a', 'b'] | map('upper') | list ~ ['a', 'b'] | map('replace', 'a', 'x') | join ~ [{'a': 1}, {}] | map(attribute='a', default=0) | list
-3 | abs ~ ' ' ~ (-3) | abs ~ ' ' ~ 3.5 | int ~ '42' | int ~ 'x' | int ~ 'x' | int(7) ~ 'ff' | int(base=16) ~ '3.9' | int
'1.5' | float ~ 'x' | float ~ 2 | float ~ 'x' | float(1.0)
2.5 | round ~ 3.5 | round ~ 2.675 | round(2) ~ 2.1 | round(method='ceil') ~ 2.9 | round(0, 'floor') ~ 42.55 | round(1)
1 | string ~ none | string ~ [1] | string | length
'a\nb\n\nc' | indent ~ '|' ~ 'a\nb' | indent(2, true) ~ '|' ~ 'a\n\nb' | indent(2, blank=true) ~ 'a\nb' | indent('> ')
'ab' | center(6) ~ '|'
'<a href="x">&\'' | escape
'<b>' | safe
{'a': [1, 2.5, none, true], 'é': '"\\/\n\x01😀'} | tojson
{'b': 1, 'a': [1, {'c': []}], 'e': {}} | tojson(indent=2)
{'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) ~ 'é' | tojson(ensure_ascii=true) ~ [] | tojson ~ '😀' | tojson(ensure_ascii=true)
1.0 | tojson ~ 1e20 | tojson ~ 'a' | tojson
[1, [2, [3]]] == [1, [2, [3]]] ~ {'a': 1} == {'a': 1.0} ~ (1,) == [1]
{'a': 1}['a'] ~ {1: 'x'}[1] ~ {1: 'x'}[true] ~ {1.0: 'x'}[1] ~ {none: 2}[none]
1, 2
raise_exception('no')
nothing.more.still
nothing()
'a' + 1
1 + none
[] < 1
'abc' | nosuchfilter
1 is nosuchtest
'abc'.nosuchmethod()
[1].append(2)
{'a': 1}.update({'b': 2})
1 // 0
1 / 0
none | length
none[0]
range(3, 'a')
{[]: 1}
[3, 'a'] | sort
'{}'.format()
'{'.format(1)
5()
nothing | tojson
('a' ~ 'b') | upper ~ 'c'
'a' ~ 'b' | upper ~ 'c'
1 + 2 | string | int
-1 | abs
not messages | length == 0
(messages | length) > 0 and messages[0].role == 'user'
""".strip().split("\n")

# Whole templates: statements, and the spaces around them.
TEMPLATES = [
    "{% for m in messages %}\n  {{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ m.role }}\n{% else %}\nnone\n{% endfor %}\n",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.role }},{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for (a, (b, c)) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for k in {'a': 1} %}{{ k }}{% endfor %}{% for c in 'aß' %}[{{ c }}]{% endfor %}{% for x in nothing %}x{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [1, 2] %}{{ loop.index }}{{ loop.depth }}{{ a }}{{ b }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for a in [1, 2, 3, 4] %}{% if a == 2 %}{% continue %}{% endif %}{% if a == 4 %}{% break %}{% endif %}{{ a }}{% endfor %}.",
    "{% for a in [1, 1, 2] %}{{ loop.changed(a) }}{{ loop.cycle('x', 'y') }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}",
    "{% set x = 1 %}{% for a in [1, 2] %}{{ x }}{% set x = x + a %}{{ x }}{% endfor %}{{ x }}",
    "{% for a in [1, 2] %}{{ x is defined }}{% set x = a %}{% endfor %}{{ x is defined }}",
    "{% if true %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.s = ns.s ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}{{ ns.nothing is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, %}{{ c }}",
    "{% set x %}in {{ messages | length }} block{% endset %}{{ x | upper }}|{% set y | upper | replace('A', '4') %}abc{% endset %}{{ y }}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}c",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}",
    "{% macro m(a, b='x', c=none) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a=1) }}{{ m() }}{{ m(1) | upper }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% set top = 'T' %}{% macro m() %}{{ top }}{{ later }}{{ inner is defined }}{% endmacro %}{% set later = 'L' %}{% for inner in [1] %}{{ m() }}{% endfor %}",
    "{% macro m(a) %}{{ a }}{% endmacro m %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{% set x = a %}{% endmacro %}{{ m(1) }}{{ x is defined }}",
    "{% if messages | length > 1 %}many{% elif messages %}one{% else %}none{% endif %}",
    "{% if 0 %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}",
    "{% raw %}{{ not }} {% this %}{# too #}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y",
    "a{# comment #}b\n{# line #}\nc {#- left -#} d\n  {# in #}\ne",
    "  {% if 1 %}  x  {% endif %}  \n  y\n",
    "  {%+ if 1 %}x{%+ endif +%}\n  y",
    "a \n {%- if 1 -%} \n x \n {%- endif -%} \n b",
    "a \n {{- 1 -}} \n b {{ 2 -}}\n\n c\n\n{{- 3 }}\n",
    "<ul>\n    {% for a in [1, 2] %}\n    <li>{{ a }}</li>\n    {% endfor %}\n</ul>\n\n",
    "\n\n{% set a = 1 %}\n\n{{ a }}\n\n",
    "a\r\nb{% if 1 %}\r\nc{% endif %}\r\n",
    "{{ '}}' }}{{ '{%' }}{{ {'a': {'b': 1}}}}",
    "{{ {'a': {'b': 1} } }}",
    "{% generation %}x{% endgeneration %}",
    "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ tools is none }}{{ documents is none }}",
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] | trim + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles do not alternate') }}{% endif %}{{ m.content }}{% endfor %}",
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{{ system }}{{ rest | length }}",
    "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ c }}|{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.role }}{% endfor %}",
    "{% set loop_messages = messages %}{% for message in loop_messages %}{{ message }}{% endfor %}",
    "{% break %}",
    "{% if %}",
    "{% endif %}",
    "{% for x in %}{% endfor %}",
    "{{ 1 + }}",
    "{{ 'a }}",
    "{{ (1 }}",
    "{% set 1 = 2 %}",
    "{% set x.y = 2 %}",
    "{% if 1 %}",
    "{% nosuch %}",
    "{{ a b }}",
    "{# no end",
    "{% for a, b in [1] %}{% endfor %}",
    "{% for a in 5 %}{% endfor %}",
    "{% for a in none %}{% endfor %}",
]


class Generation(jinja2.ext.Extension):
    """transformers' tag around what the assistant says."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    def raise_exception(text):
        raise jinja2.exceptions.TemplateError(text)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


def case(environment, file, source, name):
    pairs = CONVERSATIONS[name]
    messages = [{"role": role, "content": content} for role, content in pairs]
    made = {"file": file, "name": name, "messages": pairs, "source": source}
    try:
        made["text"] = environment.from_string(source).render(
            messages=messages, add_generation_prompt=True, bos_token="<s>", eos_token="</s>", tools=None, documents=None
        )
    except Exception as error:  # whatever it is: Halite is to fail there, too
        made["error"] = type(error).__name__
    return made


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("out", type=pathlib.Path)
    flags.add_argument("--folder", type=pathlib.Path)
    flags = flags.parse_args()
    setup = environment()
    if flags.folder:
        files = [(path.name, path.read_text()) for path in sorted(flags.folder.glob("*.jinja"))]
        cases = [case(setup, file, text, name) for file, text in files for name in CONVERSATIONS]
    else:
        cases = [case(setup, "expression", "{{ " + text + " }}", "system") for text in EXPRESSIONS]
        own = (pathlib.Path(__file__).parent / "data/chat.jinja").read_text()
        cases += [case(setup, "chat.jinja", own, name) for name in CONVERSATIONS]
        cases += [case(setup, "template", text, name) for text in TEMPLATES for name in ["system", "empty"]]
    flags.out.write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
