import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';

/** Drops all other fields, so that bodies, names and secrets never leak. */
const ALLOWED = new Set([
  'request_id',
  'account_id',
  'key_id',
  'user_id',
  'user_ids',
  'session',
  'proof',
  'outcome',
  'livemode',
  'payment_id',
  'refund_id',
  'payout_id',
  'recipient_id',
  'crypto_payment_id',
  'crypto_settlement_id',
  'dispute_id',
  'transaction_id',
  'file_id',
  'object',
  'event_id',
  'event_type',
  'endpoint_id',
  'callback_id',
  'workflow_id',
  'activity',
  'attempt',
  'book',
  'connector',
  'differing',
  'method',
  'path',
  'route',
  'status',
  'code',
  'duration_ms',
  'seconds',
  'count',
  'address',
  'port',
  'part',
  'readers',
  'err',
]);

export type { Logger };

/** Logs only type, message and stack of an error. */
export function createLogger(name: string, level: string, to?: DestinationStream): Logger {
  const options: LoggerOptions = {
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label) => ({ level: label }),
      log: (fields) =>
        Object.fromEntries(Object.entries(fields).filter(([field]) => ALLOWED.has(field))),
    },
    serializers: {
      err: (error: Error) => ({ type: error.name, message: error.message, stack: error.stack }),
    },
  };
  return to === undefined ? pino(options) : pino(options, to);
}
