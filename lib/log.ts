/**
 * Structured logs: one JSON object a line on standard error. An event has a name in `event` and its
 * data in fields, and a failure is logged once, where it is handled. Tokens, query strings and
 * bodies never go into a field.
 */
import pino from 'pino';
import { timestamp } from './time/clock.ts';
import { limits } from '../schemas/limits.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  child(fields: Fields): Log;
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * Collects lines for one write. sonic-boom can do that too, but measures everything that waits
 * again with each line.
 */
class Lines {
  readonly #destination: pino.DestinationStream;
  #waiting = '';

  constructor(destination: pino.DestinationStream) {
    this.#destination = destination;
  }

  write(line: string): void {
    this.#waiting += line;
    if (this.#waiting.length >= limits.logBufferChars) this.flush();
  }

  flush(): void {
    if (this.#waiting === '') return;
    const lines = this.#waiting;
    this.#waiting = '';
    this.#destination.write(lines);
  }
}

/** A pino timestamp in ISO 8601; lines of the same millisecond share the text. */
function createTimestamp(): () => string {
  let atMs = Number.NaN;
  let text = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = `,"time":"${timestamp(nowMs)}"`;
    }
    return text;
  };
}

function wrap(logger: pino.Logger, flush: () => void): Log {
  const quiet = (level: 'debug' | 'info') => (event: string, fields?: Fields) => logger[level]({ event, ...fields });
  const loud = (level: 'warn' | 'error') => (event: string, fields?: Fields) => {
    logger[level]({ event, ...fields });
    flush();
  };
  return {
    debug: quiet('debug'),
    info: quiet('info'),
    warn: loud('warn'),
    error: loud('error'),
    child: (fields) => wrap(logger.child(fields), flush),
  };
}

export function createLog(program: string, level: LogLevel, destinationFd = 2): Log {
  const options: pino.LoggerOptions = {
    level,
    base: { program, pid: process.pid },
    timestamp: createTimestamp(),
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: pino.stdSerializers.errWithCause },
  };
  const lines = new Lines(pino.destination({ fd: destinationFd, sync: true }));
  const flush = (): void => lines.flush();
  setInterval(flush, limits.logBufferMs).unref();
  process.on('exit', flush);
  return wrap(pino(options, lines), flush);
}

/** Reads the level before the rest of the configuration, so that faults there can be logged. */
export const logLevelOf = (env: NodeJS.ProcessEnv): LogLevel =>
  logLevels.find((known) => known === env['LOG_LEVEL']) ?? 'info';
