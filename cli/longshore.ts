#!/usr/bin/env -S node --
// Without the two dashes Node 20 takes an `--env-file` of ours for one of its own.
/** `longshore` of the package of the command line alone. */
import { groups } from './groups.ts';
import { runLongshore } from './run.ts';

await runLongshore(groups);
