/** The gateway: whether this host reaches it, and whether its clock and this one agree. */
import { minutes, seconds } from '../../schemas/limits/units.ts';
import { isOfCertificate, reasonOf } from '../commands/reason.ts';
import { fail, ok, warn, type Finding } from './finding.ts';

/** Offsets of the host's clock that are a warning, and a failure. */
const doctorClockWarnMs = 5 * seconds;
const doctorClockFailMs = 5 * minutes;

export type GatewayFacts =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly location: string | undefined;
      /**
       * The clock of this host minus that of the answer; `undefined` if the answer names no time.
       */
      readonly aheadMs: number | undefined;
    }
  | { readonly kind: 'unreached'; readonly why: string };

/** One GET of the gateway's readiness. Never rejects. */
export async function askGateway(url: string, nowMs: () => number, ms: number): Promise<GatewayFacts> {
  const sentMs = nowMs();
  try {
    const signal = AbortSignal.timeout(ms);
    const response = await fetch(new URL('/readyz', url), { redirect: 'manual', signal });
    const heardMs = nowMs();
    await response.body?.cancel();
    const date = Date.parse(response.headers.get('date') ?? '');
    // A Date has whole seconds: on average it is half a second behind.
    const aheadMs = Number.isNaN(date) ? undefined : (sentMs + heardMs) / 2 - (date + 500);
    const location = response.headers.get('location') ?? undefined;
    return { kind: 'answered', status: response.status, location, aheadMs };
  } catch (error) {
    return { kind: 'unreached', why: reasonOf(error) };
  }
}

/** Pure. An enrolled host needs no gateway until its credentials expire. */
export function judgeGateway(facts: GatewayFacts, url: string, isEnrolled: boolean): Finding {
  const check = 'gateway';
  const bad = isEnrolled ? warn : fail;
  if (facts.kind === 'unreached') {
    const why = `${url} does not answer: ${facts.why}`;
    return bad(check, isEnrolled ? `${why} (an enrolled host works without it)` : why, remedyOf(facts.why));
  }
  const { status, location } = facts;
  if (status >= 300 && status < 400) {
    return bad(check, `${url} redirects to ${location ?? 'another place'}`, 'set LONGSHORE_URL to the gateway itself');
  }
  if (status === 503) {
    return warn(check, `${url} answers, but is not ready (503)`, 'the gateway waits for NATS or actors: look there');
  }
  if (status !== 200) {
    return bad(check, `${url} answers ${status}: there is no gateway`, 'correct LONGSHORE_URL');
  }
  return ok(check, `${url} is ready`);
}

function remedyOf(why: string): string {
  if (/ENOTFOUND|EAI_AGAIN/.test(why)) return 'correct LONGSHORE_URL, or this machine’s DNS';
  if (isOfCertificate(why)) {
    return 'give Node the gateway’s authority (NODE_EXTRA_CA_CERTS), or correct the name in LONGSHORE_URL';
  }
  return 'correct LONGSHORE_URL, or open the way to it';
}

/** Pure. @param issuedMs the time at which the credentials of this host were signed */
export function judgeClock(facts: GatewayFacts, issuedMs: number | undefined, nowMs: number): Finding {
  const check = 'clock';
  const remedy = 'set the clock and keep it right: systemctl status systemd-timesyncd (or chrony)';
  const behindMs = issuedMs === undefined ? 0 : issuedMs - nowMs;
  if (behindMs > doctorClockWarnMs) {
    return fail(check, `at least ${inWords(behindMs)} behind: this host’s credentials are from the future`, remedy);
  }
  if (facts.kind !== 'answered' || facts.aheadMs === undefined) {
    return warn(check, 'not compared: the control plane named no time', 'reach the gateway, and run the doctor again');
  }
  const offMs = Math.abs(facts.aheadMs);
  const says = `${inWords(offMs)} ${facts.aheadMs > 0 ? 'ahead of' : 'behind'} the gateway’s clock`;
  if (offMs >= doctorClockFailMs) {
    return fail(check, `${says}: credentials and the times of log lines are wrong`, remedy);
  }
  return offMs >= doctorClockWarnMs ? warn(check, says, remedy) : ok(check, 'agrees with the gateway’s clock');
}

function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} minutes` : `${Math.round(seconds / 3600)} hours`;
}
