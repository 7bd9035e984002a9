#!/usr/bin/env -S node --
/** `longshore` in a checkout: its backup and its restore find the cluster of `npm start`. */
import { runLongshore } from '../cli/run.ts';
import { groupsWithOps } from '../ops/groups.ts';

await runLongshore(groupsWithOps(async (env) => (await import('./stack/target.ts')).startedTarget(env)));
