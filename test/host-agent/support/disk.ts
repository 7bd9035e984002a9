/** The disk of a state folder, for tests that look at no fault of it. */
import { createStateDisk, type StateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { quietLog } from '../../actors/support.ts';

export const quietDisk = (): StateDisk => createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 1 }, quietLog);
