//! Chat templates that ask for all the time and memory there is: an error that says so. A program of its own, as it looks at the
//! most memory that its process held.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use halite_text::{ChatTemplate, Message, TextError};

/// Most memory of this process so far, where the system tells: bytes.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Processor time of this process so far, where the system tells.
fn time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // Ticks of a hundredth of a second: those of user and system.
    Some(Duration::from_millis(10 * (fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)))
}

/// One test at a time, as one looks at what the whole process takes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something again and again: a hundred million times, if it were let.
fn forever(before: &str, step: &str) -> String {
    format!(
        "{before}{{% for i in range(10000) %}}{{% for j in range(10000) %}}{step}{{% endfor %}}{{% endfor %}}"
    )
}

/// Templates with values that double, each with a name.
fn doubling_ones() -> Vec<(&'static str, String)> {
    let doubling = |start: &str, step: &str, use_it: &str| {
        format!(
            "{{% set ns = namespace(a={start}) %}}{{% for i in range(99) %}}{{% set ns.a = {step} %}}{{% endfor %}}{use_it}"
        )
    };
    vec![
        ("texts that double by +", doubling("'a'", "ns.a + ns.a", "")),
        ("texts that double by ~", doubling("'a'", "ns.a ~ ns.a", "")),
        ("texts that double by *", doubling("'a'", "ns.a * 2", "")),
        ("texts that double by join", doubling("'a'", "[ns.a, ns.a] | join(ns.a)", "")),
        ("texts that double in blocks", "{% set s = 'a' %}{% macro f(s) %}{{ s }}{{ s }}{% endmacro %}".to_owned()
            + &doubling("'a'", "f(ns.a)", "")),
        ("texts that double by replace", doubling("'ab'", "ns.a | replace('a', ns.a)", "")),
        ("texts that double by format", doubling("'a'", "'%s%s' | format(ns.a, ns.a)", "")),
        ("texts that double by str.format", doubling("'a'", "'{0}{0}'.format(ns.a)", "")),
        ("lists that double by +", doubling("[1]", "ns.a + ns.a", "")),
        ("lists that double by *", doubling("[1]", "ns.a * 2", "")),
        ("lists of lists that double, printed", doubling("[1]", "[ns.a, ns.a]", "{{ ns.a }}")),
        ("lists of lists, printed", "{% set ns = namespace(a=[1]) %}{% for i in range(50) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}".to_owned()),
        ("lists of lists, compared", "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(50) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}".to_owned()),
        ("tables of tables, compared", "{% set ns = namespace(a={}, b={}) %}{% for i in range(50) %}{% set ns.a = {1: ns.a, 2: ns.a} %}{% set ns.b = {1: ns.b, 2: ns.b} %}{% endfor %}{{ ns.a == ns.b }}".to_owned()),
        ("lists within lists without end", forever("{% set ns = namespace(a=[]) %}", "{% set ns.a = [ns.a] %}")),
    ]
}

/// Others that want more than there is.
fn endless() -> Vec<(&'static str, String)> {
    vec![
        ("loops in loops that do nothing", forever("", "")),
        ("a large range", "{% for i in range(1000000000) %}{% endfor %}".to_owned()),
        (
            "texts kept for ever",
            forever("{% set ns = namespace(a=[]) %}", "{% set ns.a = ns.a + ['x' * 1000] %}"),
        ),
        ("a wide text", "{{ 'a' | center(1000000000000) }}".to_owned()),
        ("zeros in front", "{{ 'a'.zfill(1000000000000) }}".to_owned()),
        ("moved in far", "{{ 'a\n' * 1000 | indent(1000000000000) }}".to_owned()),
        ("moved in often", "{{ ('a\n' * 100000) | indent(100000) }}".to_owned()),
        ("JSON moved in far", "{{ [1] | tojson(indent=1000000000000) }}".to_owned()),
        ("a text many times", "{{ 'a' * 1000000000000 }}".to_owned()),
        ("a list many times", "{{ [1] * 1000000000000 }}".to_owned()),
        ("much replaced by much", "{% set s = 'a' * 1000000 %}{{ s | replace('a', s) }}".to_owned()),
        (
            "replaced for ever",
            forever("{% set s = 'a' * 10000000 %}", "{% set t = s | replace('a', 'bb') %}"),
        ),
        ("looked through for ever", forever("{% set s = 'a' * 10000000 %}", "{% set t = s.find('b') %}")),
        (
            "compared for ever",
            forever("{% set s = 'a' * 10000000 %}{% set t = 'a' * 10000000 %}", "{{ s == t }}"),
        ),
        ("counted for ever", forever("{% set s = 'a' * 10000000 %}", "{% set t = s | length %}")),
        ("cut for ever", forever("{% set s = 'a' * 10000000 %}", "{% set t = s[5:6] %}")),
        ("lists cut for ever", forever("{% set s = range(100000) %}", "{% set t = s[::-1] %}")),
        ("sorted for ever", forever("{% set s = range(100000) %}", "{% set t = s | sort %}")),
        ("found for ever", forever("{% set s = range(100000) %}", "{{ -1 in s }}")),
        ("letters of a long text", "{% for c in 'a' * 10000000 %}{% endfor %}".to_owned()),
        ("unique ones", "{{ range(100000) | unique | list | length }}".to_owned()),
        ("a sum of texts", "{{ (['ab'] * 100000) | sum(start='') | length }}".to_owned()),
        ("a sum of lists", "{{ ([[1, 2]] * 100000) | sum(start=[]) | length }}".to_owned()),
        (
            "macros that call each other twice",
            "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}".to_owned(),
        ),
        ("macros without end", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned()),
        ("macros in defaults", "{% macro f(a=f()) %}{% endmacro %}{{ f() }}".to_owned()),
        ("split to letters", "{{ ('a,' * 5000000).split(',') | length }}".to_owned()),
        ("lines", "{{ ('\n' * 10000000).splitlines() | length }}".to_owned()),
        ("joined", "{{ ([1] * 1000000) | join('a' * 1000000) }}".to_owned()),
        ("a table in JSON with far keys", "{{ dict(range(9) | batch(1) | list) }}".to_owned()),
        ("prints of a text that is long", forever("{% set s = 'a' * 1000000 %}", "{{ s }}")),
    ]
}

/// Templates that are long or deep by themselves.
fn long_sources() -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("brackets in brackets", format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000))),
        ("signs before signs", format!("{{{{ {}1 }}}}", "-".repeat(100_000))),
        ("not not", format!("{{{{ {}1 }}}}", "not ".repeat(100_000))),
        ("lists in the source", format!("{{{{ {}{} }}}}", "[".repeat(100_000), "]".repeat(100_000))),
        ("choices in choices", format!("{{{{ {}2 }}}}", "1 if 0 else ".repeat(40_000))),
        ("blocks in blocks", "{% if 1 %}".repeat(50_000)),
        ("loops in the source", "{% for a in [1] %}".repeat(25_000)),
        ("long ones", "x".repeat(600_000)),
    ];
    let mut names = String::from("{% macro f(n) %}");
    for name in 0..4000 {
        write!(names, "{{% set a{name} = 'x' * n %}}").unwrap();
    }
    all.push(("many names", names + "{{ f(n) }}{% endmacro %}{{ f(100000) }}"));
    all
}

#[test]
fn templates_that_want_all_there_is_are_stopped() {
    let _alone = alone();
    let messages = [Message::new("user", "Hello")];
    let begun = most_memory();
    for (name, source) in doubling_ones().into_iter().chain(endless()).chain(long_sources()) {
        let before = time();
        let made = ChatTemplate::new(&source, "<s>", "</s>").and_then(|template| template.prompt(&messages));
        let taken = time().zip(before).map(|(after, before)| after - before);
        let error = made.expect_err(name);
        let text = error.to_string();
        assert!(text.contains("chat template") || text.contains("chat_template"), "{name}: {text}");
        let says = ["more than", "the most", "deep", "is made of one table"];
        assert!(says.iter().any(|says| text.contains(says)), "{name}: {text}");
        println!("{name}: {taken:?}, {:?} MiB so far: {text}", most_memory().map(|bytes| bytes >> 20));
        // What is counted bounds the time; this is of a build without optimization, on whatever machine.
        assert!(taken.is_none_or(|taken| taken < Duration::from_secs(30)), "{name}: {taken:?}");
    }
    if let (Some(begun), Some(now)) = (begun, most_memory()) {
        assert!(now - begun < 160 << 20, "{} MiB", (now - begun) >> 20);
    } else {
        println!("SKIPPED: the system does not say what memory a process held");
    }
}

#[test]
fn what_takes_too_much_is_told_from_what_is_wrong() {
    let _alone = alone();
    let ask = |source: &str| ChatTemplate::new(source, "", "").unwrap().prompt(&[]).unwrap_err();
    let much = ask("\n\n{{ 'a' * 100000000 }}");
    assert!(matches!(much, TextError::TooMuch(_)), "{much:?}");
    assert!(much.to_string().contains("line 3: makes texts and lists of more than"), "{much}");
    let wrong = ask("{{ 1 + none }}");
    assert!(matches!(wrong, TextError::Invalid(_)), "{wrong:?}");
}

#[test]
fn long_conversations_are_not_too_much() {
    let _alone = alone();
    let source = "{% for m in messages %}{% set c = m.content | trim %}{% if '</think>' in c %}{% set c = c.split('</think>')[-1] %}{% endif %}\
        {{ '<|im_start|>' ~ m.role ~ '\n' ~ c ~ '<|im_end|>\n' }}{% if messages[loop.index0:] | length > 0 %}{% endif %}{% endfor %}";
    let template = ChatTemplate::new(source, "", "").unwrap();
    let many: Vec<_> = (0..400).map(|turn| Message::new("user", format!("question {turn}"))).collect();
    assert!(template.prompt(&many).unwrap().ends_with("question 399<|im_end|>\n"));
    let long = [Message::new("user", "0123456789abcdef\n".repeat(1 << 17))];
    assert_eq!(
        template.prompt(&long).unwrap().len(),
        (17 << 17) - 1 + "<|im_start|>user\n<|im_end|>\n".len()
    );
}

/// Threads of programs may have small stacks.
#[test]
fn deep_templates_fit_a_small_stack() {
    let _alone = alone();
    let deep: Vec<String> = long_sources()
        .into_iter()
        .map(|(_, source)| source)
        .filter(|source| source.len() > 300_000)
        .collect();
    let mut sources = vec![
        "{% macro f(n) %}{% if n %}{% for a in [1] %}{{ [[f(n - 1)]] | join | trim }}{% endfor %}{% endif %}{% endmacro %}{{ f(1000) }}".to_owned(),
        format!("{{{{ {}1{} }}}}", "[(-".repeat(20), ")]".repeat(20)),
        "{% set ns = namespace(a=[]) %}{% for i in range(60) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}{{ ns.a == ns.a }}{{ ns.a | tojson }}".to_owned(),
        "{% set x = ['map'] * 60 %}{{ [[1]] | map('map', 'map', 'map', 'map', 'first') | list }}".to_owned(),
    ];
    sources.extend(deep);
    let run = move || {
        for source in sources {
            drop(ChatTemplate::new(&source, "", "").and_then(|template| template.prompt(&[])));
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

/// Without optimization calls take several times as much of it.
const STACK: usize = if cfg!(debug_assertions) { 1 << 20 } else { 256 << 10 };
