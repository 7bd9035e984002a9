#!/usr/bin/env -S node --
/** `longshore` with an operator's commands, as production has it. */
import { runLongshore } from '../cli/run.ts';
import { groupsWithOps } from './groups.ts';

await runLongshore(groupsWithOps());
