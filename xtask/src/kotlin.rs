//! The Java interface as Kotlin sees it: a program is compiled and run, and what may not be null must not be null. The compiler comes from
//! PyPI, in a package for notebooks.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    python,
    shell::{command, output, repo, say},
};

/// The package with the compiler, as a version that is known to have it; nothing of what it asks for is needed.
const PACKAGE: [&str; 2] = ["--no-deps", "kotlin-jupyter-kernel==0.19.0.944"];
/// Where its files are.
const JARS: &str = "import sysconfig, pathlib; print(pathlib.Path(sysconfig.get_paths()['purelib']) / 'run_kotlin_kernel/jars')";
const COMPILER: &str = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler";
const PROGRAM: &str = "java/tests/kotlin/KotlinTests.kt";
/// Its lines with a comment at their end are wrong. Not `.kt`: it never compiles.
const WRONG: &str = "java/tests/kotlin/Wrong.kt.txt";

/// Kotlin's compiler.
pub struct Kotlin {
    /// All that it is made of.
    jars: Vec<PathBuf>,
    /// What programs need to run.
    library: PathBuf,
}

impl Kotlin {
    /// Fetches the compiler, the first time; says why it cannot.
    pub fn find() -> Option<Kotlin> {
        match Kotlin::fetch() {
            Ok(found) => Some(found),
            Err(why) => {
                println!("\nSKIPPED: the interface from Kotlin: {why:#}");
                None
            }
        }
    }

    fn fetch() -> Result<Kotlin> {
        let interpreter = python::environment("kotlin", &PACKAGE)?;
        let folder = output(&mut command(&interpreter.to_string_lossy(), &["-c", JARS]))?;
        let entries = fs::read_dir(folder.trim()).context("the package has other files than it had")?;
        let mut jars: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        jars.sort();
        let is_library = |jar: &&PathBuf| {
            jar.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kotlin-stdlib-"))
        };
        let library = jars.iter().find(is_library).context("the package has no kotlin-stdlib")?.clone();
        Ok(Kotlin { jars, library })
    }

    /// The command that compiles a file against Java's half.
    fn compiler(&self, jar: &Path, source: &Path, to: &Path) -> Result<std::process::Command> {
        let mut compile = command("java", &["-Xmx1g", "-cp"]);
        compile.arg(std::env::join_paths(&self.jars)?).args([
            COMPILER,
            "-no-stdlib",
            "-no-reflect",
            "-Werror",
        ]);
        compile.arg("-cp").arg(std::env::join_paths([jar, &self.library])?).arg("-d").arg(to).arg(source);
        Ok(compile)
    }

    /// Compiles what is right, and what is wrong; returns the folders and archives that the program runs with.
    pub fn compile(&self, jar: &Path, work: &Path) -> Result<Vec<PathBuf>> {
        say("Kotlin's compiler");
        fs::create_dir_all(work)?;
        let classes = work.join("classes");
        output(&mut self.compiler(jar, &repo(PROGRAM), &classes)?)?;
        let wrong = work.join("Wrong.kt");
        let text = fs::read_to_string(repo(WRONG))?;
        fs::write(&wrong, &text)?;
        let out =
            self.compiler(jar, &wrong, &work.join("nothing"))?.output().context("java does not start")?;
        ensure!(!out.status.success(), "Kotlin compiles '{WRONG}'");
        let told = String::from_utf8_lossy(&out.stderr);
        let expected = wrong_lines(&text);
        let missed: Vec<_> =
            expected.iter().filter(|line| !told.contains(&format!("Wrong.kt:{line}:"))).collect();
        ensure!(missed.is_empty(), "Kotlin has nothing to say of the lines {missed:?} of '{WRONG}':\n{told}");
        println!("a program compiles; {} wrong uses of null do not", expected.len());
        Ok(vec![classes, jar.to_owned(), self.library.clone()])
    }
}

/// The lines of a text with a comment behind something, from 1 on.
fn wrong_lines(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| line.trim().find(" // ").is_some_and(|at| at > 0))
        .map(|(place, _)| place + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_with_a_comment_at_their_end_are_found() {
        assert_eq!(super::wrong_lines("// no\na() // yes\n\nb()\n    c() // yes"), [2, 5]);
    }
}
