//! What the tutorial shows of programs stands so in the examples, which are built and run.

use std::{fs, path::PathBuf};

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_tutorial_shows_what_the_examples_are() {
    let page = read("docs/tutorials/getting-started-c.md");
    let examples = read("capi/examples/digits.c") + &read("capi/examples/digits.cpp");
    let mut count = 0;
    for language in ["```c\n", "```cpp\n"] {
        for part in page.split(language).skip(1) {
            let code = part.split("```").next().unwrap_or_default();
            assert!(examples.contains(code), "no example has:\n{code}");
            count += 1;
        }
    }
    assert_eq!(count, 3, "the tutorial has three programs");
}

#[test]
fn the_tutorial_and_the_packages_page_name_files_that_are_there() {
    for page in ["docs/tutorials/getting-started-c.md", "docs/reference/c-packages.md"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
        let folder = folder.parent().expect("a page lies in a folder").to_owned();
        for link in read(page).split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            assert!(target.is_empty() || folder.join(target).exists(), "{page}: there is no {target}");
        }
    }
}
