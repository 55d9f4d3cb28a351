package org.halite;

/** What the native half calls. */
final class Progress {
    private final ProgressListener listener;

    Progress(ProgressListener listener) {
        this.listener = listener;
    }

    void tell(String stage, String detail, long done, long total) {
        listener.onProgress(Stage.of(stage), detail, done, total);
    }
}
