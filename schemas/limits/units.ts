/** Units that bounds are written in: sizes in bytes, times in milliseconds. */
export const KiB = 1024;
export const MiB = 1024 * KiB;
export const seconds = 1000;
export const minutes = 60 * seconds;
export const hours = 60 * minutes;
export const days = 24 * hours;
