//! Texts and arrays of Java as those of Rust, and back.

use jni::{
    Env,
    objects::{JIntArray, JLongArray, JObjectArray, JString},
    sys::jlong,
};

use crate::failure::{Failure, Result};

/// A text.
pub fn text(env: &Env<'_>, given: &JString<'_>) -> Result<String> {
    Ok(given.try_to_string(env)?)
}

/// A text, or nothing for null.
pub fn optional_text(env: &Env<'_>, given: &JString<'_>) -> Result<Option<String>> {
    if given.is_null() { Ok(None) } else { text(env, given).map(Some) }
}

/// Texts.
pub fn texts(env: &mut Env<'_>, given: &JObjectArray<'_, JString<'_>>) -> Result<Vec<String>> {
    let count = given.len(env)?;
    let mut all = Vec::with_capacity(count);
    for place in 0..count {
        let one = given.get_element(env, place)?;
        all.push(text(env, &one)?);
        env.delete_local_ref(one);
    }
    Ok(all)
}

/// Texts for Java.
pub fn array_of<'local>(
    env: &mut Env<'local>,
    all: &[String],
) -> Result<JObjectArray<'local, JString<'local>>> {
    let array = env.new_object_type_array::<JString<'_>>(all.len(), JString::null())?;
    for (place, one) in all.iter().enumerate() {
        let one = env.new_string(one)?;
        array.set_element(env, place, &one)?;
        env.delete_local_ref(one);
    }
    Ok(array)
}

/// Numbers.
pub fn longs(env: &Env<'_>, given: &JLongArray<'_>) -> Result<Vec<jlong>> {
    let mut numbers = vec![0; given.len(env)?];
    given.get_region(env, 0, &mut numbers)?;
    Ok(numbers)
}

/// Numbers for Java.
pub fn array_of_longs<'local>(env: &mut Env<'local>, numbers: &[jlong]) -> Result<JLongArray<'local>> {
    let array = env.new_long_array(numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

/// Tokens. Their numbers are those of Java as they are: more than Java's integers reach no model knows.
pub fn tokens(env: &Env<'_>, given: &JIntArray<'_>) -> Result<Vec<u32>> {
    let mut numbers = vec![0; given.len(env)?];
    given.get_region(env, 0, &mut numbers)?;
    let known = |token: i32| {
        u32::try_from(token)
            .map_err(|_| Failure::invalid(format!("a token is no negative number, as {token} is")))
    };
    numbers.into_iter().map(known).collect()
}

/// Tokens for Java.
pub fn array_of_tokens<'local>(env: &mut Env<'local>, tokens: &[u32]) -> Result<JIntArray<'local>> {
    let array = env.new_int_array(tokens.len())?;
    let numbers: Vec<i32> = tokens.iter().map(|token| token.cast_signed()).collect();
    array.set_region(env, 0, &numbers)?;
    Ok(array)
}

/// The sizes of a tensor.
pub fn shape(env: &Env<'_>, given: &JLongArray<'_>) -> Result<Vec<usize>> {
    let sizes = longs(env, given)?;
    let usual = |size: &jlong| usize::try_from(*size).ok();
    sizes
        .iter()
        .map(usual)
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::invalid(format!("{sizes:?} is no shape")))
}

/// A type of elements by its name.
pub fn element_type(env: &Env<'_>, given: &JString<'_>) -> Result<halite::ElementType> {
    let name = text(env, given)?;
    name.parse().map_err(|_| Failure::invalid(format!("'{name}' is no type of elements")))
}
