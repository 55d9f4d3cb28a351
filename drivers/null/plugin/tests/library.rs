//! The tests of the layers once more, over the null driver in the library that this crate makes (`common` chooses it by the
//! name of this program), and what only a library can show.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]
#![allow(
    clippy::duplicate_mod,
    reason = "each of the files has its own `common`, as it has when it is a program"
)]

#[path = "../../../../layers/tests/common/mod.rs"]
mod common;
#[path = "../../../../layers/tests/execution.rs"]
mod execution;
#[path = "../../../../layers/tests/peers.rs"]
mod peers;
#[path = "../../../../layers/tests/queue_operations.rs"]
mod queue_operations;
#[path = "../../../../layers/tests/recording.rs"]
mod recording;
#[path = "../../../../layers/tests/shared.rs"]
mod shared;

use std::{fs, sync::Arc, thread};

use common::*;
use halite_hal::*;

#[test]
fn the_library_tells_what_it_is() {
    let library = halite_plugin::load(&library_path()).unwrap();
    assert_eq!(library.driver.name(), "null");
    assert_eq!(library.version, env!("CARGO_PKG_VERSION"));
    assert!(library.build.starts_with("halite-null-plugin 0."), "{}", library.build);
    assert_eq!(
        library.abi_version,
        (halite_plugin::abi::HALITE_ABI_MAJOR, halite_plugin::abi::HALITE_ABI_MINOR)
    );
    assert_eq!(library.path, fs::canonicalize(library_path()).unwrap());
    let linked = halite_null::NullDriver;
    assert_eq!(library.driver.description(), linked.description());
    assert_eq!(library.driver.options(), linked.options());
    assert_eq!(
        library.driver.enumerate(&Options::new()).unwrap(),
        linked.enumerate(&Options::new()).unwrap()
    );
}

#[test]
fn a_file_is_loaded_once_under_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("other.so");
    std::os::unix::fs::symlink(fs::canonicalize(library_path()).unwrap(), &link).unwrap();
    let path = library_path();
    let drivers: Vec<_> = thread::scope(|scope| {
        let load = |path| scope.spawn(move || halite_plugin::load(path).unwrap().driver);
        let threads = [load(&path), load(&link), load(&path)];
        threads.map(|t| t.join().unwrap()).into()
    });
    assert!(drivers.iter().all(|d| Arc::ptr_eq(d, &drivers[0])));
}

#[test]
fn devices_of_all_copies_have_identities_of_their_own() {
    let loaded = halite_plugin::load(&library_path()).unwrap().driver;
    let linked = halite_null::NullDriver;
    let mut ids: Vec<u64> = (0..20)
        .flat_map(|_| [loaded.open("", &Options::new()), linked.open("", &Options::new())])
        .map(|device| device.unwrap().id())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 40);
}

#[test]
fn semaphores_of_the_program_and_of_the_library_order_each_others_work() {
    let (loaded, linked) = (
        device(),
        halite_layers::validation::ValidatedDevice::wrap(
            halite_null::NullDriver.open("", &Options::new()).unwrap(),
        ),
    );
    for (first, second) in [(&loaded, &linked), (&linked, &loaded)] {
        let (start, middle, end) = (
            first.create_semaphore(0).unwrap(),
            first.create_semaphore(0).unwrap(),
            second.create_semaphore(0).unwrap(),
        );
        let fence = |s: &Arc<dyn Semaphore>| Fence::new(s.clone(), 1);
        let (b, any) = (buffer(second, 4), QueueAffinity::ANY);
        let fill = QueueOp::Fill { target: span(&b, 0, 4), pattern: 7, pattern_length: 1 };
        second.queue_submit(any, &fence(&middle), &fence(&end), fill).unwrap();
        first.queue_submit(any, &fence(&start), &fence(&middle), QueueOp::Barrier).unwrap();
        assert_eq!(end.query().unwrap(), 0);
        start.signal(1).unwrap();
        end.wait(1, Deadline::from_millis(20_000)).unwrap();
        assert_eq!(BufferSpan::whole(b).read_all().unwrap(), [7; 4]);
    }
}

#[test]
fn a_damaged_copy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(library_path()).unwrap();
    for (name, bytes) in [
        ("cut.so", &bytes[..bytes.len() / 2]),
        ("tail.so", &bytes[..bytes.len() - 1]),
        ("text.so", &b"no library"[..]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        refused(halite_plugin::load(&path), Code::Incompatible, &[name]);
    }
    refused(halite_plugin::load(&folder.path().join("none.so")), Code::NotFound, &["none.so"]);
    refused(halite_plugin::load(folder.path()), Code::InvalidArgument, &["no file"]);
}
