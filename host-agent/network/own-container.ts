/** The container that this program runs in. Pure. */

/** An engine mounts these files of a container from the container's own folder. */
const ownFile = /\/containers\/([0-9a-f]{64})\/(?:resolv\.conf|hostname|hosts) /;

/**
 * @param mountinfo `/proc/self/mountinfo` (proc_pid_mountinfo(5))
 * @returns the id of the container; undefined if no engine made one for this program
 */
export const ownContainerIn = (mountinfo: string): string | undefined => ownFile.exec(mountinfo)?.[1];
