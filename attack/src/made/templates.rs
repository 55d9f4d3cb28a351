//! Chat templates that are programs without end: values that double, lists in lists, loops in loops, macros that call each other,
//! filters that make much of little.

use crate::noise::Noise;

const FILTERS: [&str; 20] = [
    "upper",
    "trim",
    "list",
    "sort",
    "unique | list",
    "reverse | list",
    "join",
    "tojson",
    "length",
    "string",
    "first",
    "indent",
    "title",
    "escape",
    "items | list",
    "batch(2) | list",
    "map('string') | list",
    "select | list",
    "sum",
    "wordcount",
];
const METHODS: [&str; 8] =
    [".split()", ".strip('a')", ".splitlines()", ".upper()", ".items()", "[::-1]", "[1:]", ".format(ns.b)"];
/// Names of a namespace, and those of loops and macros.
const NAMES: [&str; 8] = ["ns.a", "ns.b", "ns.c", "x", "y", "messages", "loop", "nothing"];

/// Something that is computed, with so many levels left.
fn expression(noise: &mut Noise, depth: usize) -> String {
    if depth == 0 {
        return match noise.below(4) {
            0 => noise.size(1 << 40).to_string(),
            1 => format!("'{}'", "ab\\n ".repeat(noise.size(40) as usize)),
            _ => (*noise.pick(&NAMES)).to_owned(),
        };
    }
    let a = expression(noise, depth - 1);
    match noise.below(16) {
        0 => format!("[{a}, {a}]"),
        1 => format!("{{'k': {a}, 2: {a}}}"),
        2 | 3 => format!("({a}) {} ({a})", noise.pick(&["+", "~", "*", "-", "%", "//", "**"])),
        4 => format!("({a}) * {}", noise.size(1 << 30)),
        5 => format!("({a}) | replace({}, {a})", expression(noise, 0)),
        6 => format!("[{a}, {a}] | join({a})"),
        7 => format!("({a}) {} ({})", noise.pick(&["==", "<", "in", "!="]), expression(noise, depth - 1)),
        8 => format!(
            "({a}) | {}({})",
            noise.pick(&["center", "indent", "batch", "slice", "round"]),
            noise.size(1 << 40)
        ),
        9 => format!("f({a})"),
        10 => format!("({a}){}", noise.pick(&METHODS)),
        11 => format!("range({})", noise.size(1 << 24)),
        12 => format!("({a}) if ({a}) else ({})", expression(noise, depth - 1)),
        _ => format!("({a}) | {}", noise.pick(&FILTERS)),
    }
}

fn statement(noise: &mut Noise, depth: usize, to: &mut String) {
    let level = noise.below(4);
    let value = expression(noise, level);
    let name = *noise.pick(&["a", "b", "c"]);
    match noise.below(if depth == 0 { 4 } else { 9 }) {
        0 => *to += &format!("{{{{ {value} }}}}"),
        1 => *to += &format!("{{% set ns.{name} = {value} %}}"),
        2 => *to += &format!("{{% set ns.{name} = ns.{name} ~ ns.{name} %}}"),
        3 => *to += &format!("{{% set ns.{name} = [ns.{name}, ns.{name}] %}}"),
        4 | 5 => {
            *to += &format!(
                "{{% for x in {} %}}",
                if noise.once_in(2) { "range(5000)".to_owned() } else { value }
            );
            body(noise, depth - 1, to);
            *to += "{% endfor %}";
        }
        6 => {
            *to += &format!("{{% if {value} %}}");
            body(noise, depth - 1, to);
            *to += "{% endif %}";
        }
        7 => {
            *to += "{% set y %}";
            body(noise, depth - 1, to);
            *to += "{% endset %}";
        }
        _ => {
            *to += "{% filter upper | indent %}";
            body(noise, depth - 1, to);
            *to += "{% endfilter %}";
        }
    }
}

fn body(noise: &mut Noise, depth: usize, to: &mut String) {
    for _ in 0..noise.between(1, 4) {
        statement(noise, depth, to);
    }
}

/// A program; most begin as one that can go on for long.
pub fn program(noise: &mut Noise) -> Vec<u8> {
    let mut made = "{% set ns = namespace(a='ab', b=[1, 'x'], c={'k': 1}) %}{% macro f(y, n=0) %}".to_owned();
    body(noise, 1, &mut made);
    if noise.once_in(2) {
        made += "{{ f(y, n + 1) }}{{ f([y, y], n + 1) }}";
    }
    made += "{% endmacro %}";
    for _ in 0..noise.between(1, 6) {
        statement(noise, 4, &mut made);
    }
    // Far too many brackets, names or letters, now and then.
    match noise.below(40) {
        0 => made += &format!("{{{{ {} }}}}", "(".repeat(noise.size(1 << 18) as usize)),
        1 => made += &"{% if 1 %}".repeat(noise.size(1 << 16) as usize),
        2 => (0..noise.size(1 << 14)).for_each(|at| made += &format!("{{% set v{at} = ns.a %}}")),
        3 => made += &format!("{{{{ 1{} }}}}", " + 1".repeat(noise.size(1 << 16) as usize)),
        _ => {}
    }
    made.into_bytes()
}
