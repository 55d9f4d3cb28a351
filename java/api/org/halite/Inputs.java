package org.halite;

import java.util.Map;

/** Inputs as the native half takes them. */
final class Inputs {
    final String[] names;
    final long[] tensors;

    /** By their names. */
    Inputs(Map<String, Tensor> given) {
        names = new String[given.size()];
        tensors = new long[given.size()];
        int place = 0;
        for (Map.Entry<String, Tensor> one : given.entrySet()) {
            names[place] = one.getKey();
            tensors[place] = one.getValue().number();
            place += 1;
        }
    }

    /** By their places. */
    Inputs(Tensor[] given) {
        names = null;
        tensors = new long[given.length];
        for (int place = 0; place < given.length; place += 1) {
            tensors[place] = given[place].number();
        }
    }
}
