/**
 * Health check of an image: ends with 0 if /readyz of the program's metrics listener answers 200.
 * That listener needs no token, and is at the same setting in all programs.
 */
const { METRICS_HOST = '127.0.0.1', METRICS_PORT } = process.env;
// Addresses that mean "all of this machine's" are none to connect to.
const host = METRICS_HOST === '0.0.0.0' || METRICS_HOST === '::' ? '127.0.0.1' : METRICS_HOST;
const url = `http://${host.includes(':') ? `[${host}]` : host}:${METRICS_PORT}/readyz`;
try {
  const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(4_000) });
  console.log(`${url}: ${status}`);
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  console.log(`${url}: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
