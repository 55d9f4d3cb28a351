//! What Java holds, by numbers. A number is given once; so one that was freed is found to be so, and never means something else.

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicI64, Ordering},
    },
};

use halite::{
    CancelToken, Embedder, ExternalMemory, Generator, Outputs, Sampler, Sequence, Session, SharedMemory,
    State, Tensor,
};
use jni::{
    Env, EnvUnowned,
    objects::{JClass, JLongArray},
    sys::jlong,
};
use parking_lot::{Mutex, RwLock};

use crate::{
    convert,
    failure::{Failure, Result},
};

/// Something that Java holds. Clones are the same thing.
#[derive(Clone)]
pub enum Held {
    /// A session.
    Session(Session),
    /// A tensor.
    Tensor(Tensor),
    /// What a call gave.
    Outputs(Arc<Outputs>),
    /// A state; one call at a time uses it.
    State(Arc<Mutex<State>>),
    /// A language model that writes.
    Generator(Generator),
    /// Tokens and their caches; one call at a time uses them.
    Sequence(Arc<Mutex<Sequence>>),
    /// What chooses the tokens of a sequence.
    Sampler(Chooser),
    /// A language model that makes vectors.
    Embedder(Embedder),
    /// Memory that others also use.
    Memory(SharedMemory),
    /// A handle of such memory, until it is given away.
    External(Arc<Mutex<Option<ExternalMemory>>>),
    /// A switch that stops work.
    Token(CancelToken),
}

/// What chooses the tokens of a sequence; one call at a time uses it.
#[derive(Clone)]
pub struct Chooser {
    /// How.
    pub sampler: Arc<Mutex<Sampler>>,
    /// Whether the model writes on behind the token that ends a text.
    pub ignore_end: bool,
}

static HELD: LazyLock<RwLock<HashMap<i64, Held>>> = LazyLock::new(RwLock::default);
/// Zero is no handle.
static NEXT: AtomicI64 = AtomicI64::new(1);

/// Holds something for Java.
pub fn hold(what: Held) -> jlong {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    HELD.write().insert(number, what);
    number
}

fn find(handle: jlong) -> Result<Held> {
    HELD.read().get(&handle).cloned().ok_or(Failure::Closed)
}

/// A handle as what it must be.
macro_rules! finder {
    ($(#[$about:meta] $name:ident: $kind:ident -> $type:ty;)*) => {$(
        #[$about]
        pub fn $name(handle: jlong) -> Result<$type> {
            match find(handle)? {
                Held::$kind(found) => Ok(found),
                _ => Err(Failure::invalid(concat!("the handle is no ", stringify!($name)))),
            }
        }
    )*};
}

finder! {
    /// A session.
    session: Session -> Session;
    /// A tensor.
    tensor: Tensor -> Tensor;
    /// What a call gave.
    outputs: Outputs -> Arc<Outputs>;
    /// A state.
    state: State -> Arc<Mutex<State>>;
    /// A language model that writes.
    generator: Generator -> Generator;
    /// Tokens and their caches.
    sequence: Sequence -> Arc<Mutex<Sequence>>;
    /// What chooses the tokens of a sequence.
    sampler: Sampler -> Chooser;
    /// A language model that makes vectors.
    embedder: Embedder -> Embedder;
    /// Memory that others also use.
    memory: Memory -> SharedMemory;
    /// A handle of such memory.
    external: External -> Arc<Mutex<Option<ExternalMemory>>>;
    /// A switch that stops work.
    token: Token -> CancelToken;
}

/// Handles of a caller as what all of them must be.
pub fn all<T>(env: &Env<'_>, handles: &JLongArray<'_>, one: impl Fn(jlong) -> Result<T>) -> Result<Vec<T>> {
    convert::longs(env, handles)?.into_iter().map(one).collect()
}

/// Lets go of something; of nothing when it was freed before. What still works with it keeps it until then.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_free<'local>(
    _env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    let gone = HELD.write().remove(&handle);
    // Outside of the lock: letting go of a session waits for its device.
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_until_they_are_freed_and_never_mean_something_else() {
        let (first, second) =
            (hold(Held::Token(CancelToken::new())), hold(Held::Tensor(Tensor::scalar(7i32))));
        assert!(first != 0 && first != second);
        assert_eq!(tensor(second).unwrap().item::<i32>().unwrap(), 7);
        assert!(matches!(tensor(first), Err(Failure::Invalid(_))));
        HELD.write().remove(&second);
        assert!(matches!(tensor(second), Err(Failure::Closed)));
        let third = hold(Held::Token(CancelToken::new()));
        assert!(third > second && token(third).is_ok() && tensor(second).is_err() && session(0).is_err());
    }
}
