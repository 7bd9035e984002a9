/**
 * Structured logs: one JSON object a line on standard error. An event has a name in `event` and its data in fields; a
 * failure is logged once, where it is handled. Tokens, query strings and bodies never go into a field.
 */
import pino from 'pino';

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

/** Lines wait together for one write: at most this much, and this long. What is a warning or worse goes out at once. */
const bufferedBytes = 32 * 1024;
const flushIntervalMs = 200;

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
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { error: pino.stdSerializers.errWithCause },
  };
  const destination = pino.destination({
    fd: destinationFd,
    sync: true,
    minLength: bufferedBytes,
    maxWrite: 2 * bufferedBytes,
  });
  // Not flushSync, which waits for the disk (fsync) also when there is nothing to write: everything else would wait with it.
  const flush = (): void => destination.flush();
  setInterval(flush, flushIntervalMs).unref();
  process.on('exit', flush);
  return wrap(pino(options, destination), flush);
}

/** Read before the rest of the configuration, so that its faults can be logged. */
export const logLevelOf = (env: NodeJS.ProcessEnv): LogLevel =>
  logLevels.find((known) => known === env['LOG_LEVEL']) ?? 'info';
