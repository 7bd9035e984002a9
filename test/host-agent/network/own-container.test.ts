/** Detection of the program's own container, by the kernel's list of its mounts. */
import t from 'tap';
import { ownContainerIn } from '../../../host-agent/network/own-container.ts';

const id = '0f'.repeat(32);

t.test('the files that an engine mounts name the container', (t) => {
  const line = `612 590 8:1 /var/lib/docker/containers/${id}/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/sda1 rw`;
  t.equal(ownContainerIn(`590 1 0:5 / / ro - overlay overlay ro\n${line}\n`), id);
  // The agent has the engine's folder mounted, and sees the mounts of others below it.
  const other = `613 590 0:9 / /var/lib/docker/containers/${id}/mounts/shm rw - tmpfs shm rw`;
  t.equal(ownContainerIn(`590 1 8:1 / / rw - ext4 /dev/sda1 rw\n${other}\n`), undefined);
  t.equal(ownContainerIn(''), undefined);
  t.end();
});
