/**
 * Halite runs machine-learning models on Vulkan devices. Begin with {@link org.halite.Session}. Failures are {@link
 * org.halite.HaliteException}; objects with native memory are {@code AutoCloseable}.
 */
package org.halite;
