import t from 'tap';
import { settings } from '../../host-agent/settings.ts';
import { readSettings } from '../../lib/config.ts';

t.test('names and numbers of before 0.2.0 are refused with what to write', (t) => {
  const most = Number.MAX_SAFE_INTEGER;
  const refused: [name: string, value: string, fault: string][] = [
    ['SANDBOX', 'off', 'SANDBOX is now LONGSHORE_SANDBOX: on or off'],
    ['BEAT_INTERVAL_MS', '2000', 'BEAT_INTERVAL_MS is now HEARTBEAT_INTERVAL: a duration of 1ms to 1d, such as 2s'],
    ['CAPACITY_CPU_MILLIS', '0', `CAPACITY_CPU_MILLIS must be integer 1–${most}, or absent`],
    ['CAPACITY_MEM_BYTES', '0', `CAPACITY_MEM_BYTES must be integer 1–${most}, or absent`],
    ['LOG_RATE_HOST_BYTES', '0', `LOG_RATE_HOST_BYTES must be off, or integer 1–${most}`],
    ['IMAGES_HIGH_PERCENT', '100', 'IMAGES_HIGH_PERCENT must be off, or integer 0–99'],
    ['DISK_PRESSURE_PERCENT', '100', 'DISK_PRESSURE_PERCENT must be off, or integer 0–99'],
  ];
  for (const [name, value, fault] of refused)
    t.throws(() => readSettings(settings, { [name]: value }), { message: `configuration: ${fault}` }, name);
  t.end();
});
