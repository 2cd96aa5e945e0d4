import { z } from 'zod';
import { LIVE_DEMO_ALLOWED } from './base/live';
import { areCidrs, isTrustedProxies } from './base/networks';
import { isSmtpUrl, SMTP_URL_SYNTAX } from './base/smtp-url';
import { PLAIN_TEXT_ALLOWED } from './base/tls';
import { readWindows } from './domain/crypto/assets';
import { parseCurrencyLimits } from './domain/operators/approval';
import { parseRetention } from './domain/operators/retention';
import { TASK_QUEUE_PREFIX } from './domain/task-queues';

function checkBy(read: (text: string) => unknown) {
  return (text: string, ctx: z.RefinementCtx): void => {
    try {
      read(text);
    } catch (error) {
      const message = error instanceof Error ? error.message : 'unreadable';
      ctx.addIssue({ code: 'custom', message });
    }
  };
}

const port = z.coerce.number().int().min(1).max(65535);
const perSecond = z.coerce.number().int().positive();
const Limit = z
  .string()
  .refine(
    (text) => parseCurrencyLimits(text) !== undefined,
    'must be minor units, as 100000, or those of each currency, as EUR=100000,JPY=150000',
  )
  .optional();

/**
 * Source of `npm start -- --help` and the README's table. `usual` is the default under `npm start`
 * where it differs; `launcher` marks what `npm start` sets itself.
 */
export const VARIABLES = z.object({
  PORT: port.default(8080).meta({ description: 'Port of API and hosted page' }),
  HOST: z.string().default('127.0.0.1').meta({
    description: 'Address on which API and sandbox bank listen',
  }),
  PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({
      description: 'Base of customers’ links',
      usual: 'http://localhost:PORT',
    }),
  DATA_DIR: z.string().default('.data').meta({
    description: 'Data, logs, keys.json and stack.json',
  }),
  TEMPORAL_ADDRESS: z.string().default('127.0.0.1:7233').meta({
    description: 'host:port of your own Temporal server',
    usual: 'none',
  }),
  TEMPORAL_UI_PORT: port.optional().meta({
    description: 'Port of the Temporal UI',
    usual: '8233',
  }),
  TASK_QUEUE_PREFIX: z.string().regex(TASK_QUEUE_PREFIX).default('').meta({
    description: 'Prefix of task queues in a shared namespace',
  }),
  MONGODB_URI: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\//, 'starts with mongodb:// or mongodb+srv://')
    .meta({
      description: 'Your own MongoDB replica set',
      usual: 'none',
    }),
  MONGODB_DB: z.string().default('payments').meta({
    description: 'Database name; those of connectors begin with it',
  }),
  ALLOW_CLEAR_TEXT: z.enum(['', PLAIN_TEXT_ALLOWED]).default('').meta({
    description: 'yes: servers on other machines may lack TLS',
  }),
  KEYS_FILE: z.string().min(1).meta({
    description: 'The service’s secrets, mode 0600',
    usual: 'DATA_DIR/keys.json',
    launcher: true,
  }),
  KEYS_DIR: z.string().min(1).meta({
    description: 'Key pairs of recipients, keys that sign the audit log',
    usual: 'DATA_DIR/keys',
    launcher: true,
  }),
  SANDBOX_BANK_PORT: port.default(8081).meta({
    description: 'Port of the sandbox bank’s pages',
    usual: 'PORT + 1',
  }),
  SANDBOX_BANK_URL: z.url().optional().meta({
    description: 'Their address for customers',
    usual: 'http://localhost:SANDBOX_BANK_PORT',
    launcher: true,
  }),
  SANDBOX_AUTOPLAY: z.enum(['on', 'off']).default('on').meta({
    description:
      'off: the sandbox bank settles and completes nothing itself, and its statements are not imported',
  }),
  CONNECTOR_STATE_DIR: z.string().default('').meta({
    description:
      'Directory of connectors’ [state files](docs/connectors.md#after-a-restore), never part of a backup; live banks require it',
    usual: 'DATA_DIR/connectors',
    launcher: true,
  }),
  CONNECTOR_KEY_FILE: z.string().default('').meta({
    description: 'Key that signs a connector’s callbacks, mode 0600',
  }),
  EVM_CONFIG_FILE: z.string().default('').meta({
    description: '[Settings of the Ethereum connector](docs/evm.md#settings)',
  }),
  LIVE_CONNECTORS: z.string().default('').meta({
    description: 'Live banks and chains: name=method|rail|asset,name=method',
  }),
  SANDBOX_CONNECTORS: z.string().default('').meta({
    description: 'Banks’ test systems for the sandbox, in the same form',
  }),
  SEPA_OUT_DIR: z.string().default('').meta({
    description: 'Folder of files to the bank: runs the [SEPA connector](docs/sepa.md)',
  }),
  SEPA_IN_DIR: z.string().default('').meta({
    description: 'Another folder, of the bank’s files',
  }),
  SEPA_IBAN: z.string().default('').meta({
    description: 'Account that pays and is paid, in EUR',
  }),
  SEPA_BIC: z.string().default('').meta({
    description: 'Its bank’s BIC; without it a file says NOTPROVIDED',
  }),
  SEPA_NAME: z.string().default('').meta({ description: 'Holder of the account' }),
  SEPA_ADDRESS: z.string().default('').meta({
    description: 'Holder’s address in files: Street 1, 1015 CJ Town, NL',
  }),
  SEPA_CUT_OFF: z.string().default('15:00').meta({
    description: 'Cut-off of files in Frankfurt’s time, on TARGET2 days',
  }),
  SEPA_POLL_SECONDS: z.coerce.number().positive().max(3_600).default(5).meta({
    description: 'Seconds between looks at the folders',
  }),
  SEPA_FILE_MIN: z.coerce
    .number()
    .int('must be a number of payouts, 1 to 10000')
    .min(1, 'must be a number of payouts, 1 to 10000')
    .max(10_000, 'must be a number of payouts, 1 to 10000')
    .default(1)
    .meta({ description: 'Payouts below which a file [waits for more](docs/sepa.md#small-files)' }),
  SEPA_VERIFIED_DIR: z.string().default('').meta({
    description: 'Folder of smaller files, for the order type with Verification of Payee',
    usual: 'SEPA_OUT_DIR',
  }),
  SEPA_INSTANT: z.enum(['', 'yes'], 'must be yes, or not set').default('').meta({
    description:
      'yes: the connector serves sepa_instant, [in files of its own](docs/sepa.md#instant)',
  }),
  SEPA_INSTANT_SECONDS: z.coerce
    .number()
    .min(0, 'must be 0 to 3600 seconds')
    .max(3_600, 'must be 0 to 3600 seconds')
    .default(5)
    .meta({ description: 'Seconds from the first waiting instant payout to its file' }),
  SEPA_INSTANT_FINAL: z
    .enum(['status', 'booking'], 'must be status or booking')
    .default('status')
    .meta({
      description: 'booking: for a bank that sends no final status, a booking completes',
    }),
  SEPA_INSTANT_OVERDUE_SECONDS: z.coerce
    .number()
    .positive('must be above 0, and at most 86400 seconds')
    .max(86_400, 'must be above 0, and at most 86400 seconds')
    .default(60)
    .meta({
      description: 'Seconds after which an instant file without its results calls an operator',
    }),
  CRYPTO_WINDOWS: z.string().default('').superRefine(checkBy(readWindows)).meta({
    description: 'Minutes to pay a crypto payment: BTC=60,ETH=15',
    usual: '30 for each',
  }),
  ALLOW_LIVE_DEMO: z.enum(['', LIVE_DEMO_ALLOWED]).default('').meta({
    description: 'yes: live banks under npm start, over http, as a trial',
  }),
  RATE_LIMIT_PER_SECOND: perSecond.default(500).meta({
    description: '[Limit](docs/api.md#rate-limits) of requests per second of one key',
  }),
  ACCOUNT_LIMIT_PER_SECOND: perSecond.default(1_000).meta({
    description: 'The same of an account in one environment',
  }),
  CREATE_LIMIT_PER_SECOND: perSecond.default(200).meta({
    description: 'Live creates per second of an account',
  }),
  SANDBOX_CREATE_LIMIT_PER_SECOND: perSecond.default(200).meta({
    description: 'The same in the sandbox',
  }),
  CREATES_AT_ONCE: z.coerce.number().int().positive().default(125).meta({
    description:
      '[Concurrent creates](docs/operations.md#overload) of one process in one environment',
  }),
  WORKER_ENVIRONMENTS: z.enum(['sandbox,live', 'sandbox', 'live']).default('sandbox,live').meta({
    description: 'Environments that a worker [serves](docs/operations.md#scaling)',
  }),
  API_KEEP_ALIVE_SECONDS: z.coerce
    .number()
    .int('must be 1 to 900 seconds')
    .min(1, 'must be 1 to 900 seconds')
    .max(900, 'must be 1 to 900 seconds')
    .default(65)
    .meta({
      description:
        'Seconds for which the API keeps an idle connection, more than [its proxy](docs/operations.md#on-servers-of-your-own)',
    }),
  DRAIN_MS: z.coerce.number().int().min(0).max(120_000).default(0).meta({
    description: 'Milliseconds for which the API serves after SIGTERM',
    launcher: true,
  }),
  RETENTION_MONTHS: z.string().default('').superRefine(checkBy(parseRetention)).meta({
    description: 'Months until records are [deleted](docs/operations.md#what-grows): events=24',
    usual: '13 for each',
  }),
  WEBHOOK_ALLOW_PRIVATE: z.enum(['', 'sandbox']).default('').meta({
    description: 'sandbox: sandbox endpoints may use http on this machine',
    usual: 'sandbox',
    launcher: true,
  }),
  WEBHOOK_DENY_CIDRS: z
    .string()
    .refine((text) => text === '' || areCidrs(text), 'must be CIDRs separated by commas')
    .default('')
    .meta({
      description: 'More networks that get no webhooks: 198.51.100.0/24,2001:db8::/32',
    }),
  METRICS_HOST: z.string().default('127.0.0.1').meta({
    description: 'Address of a process’s Prometheus page',
    launcher: true,
  }),
  METRICS_PORT: port.optional().meta({
    description: 'Its port, also of a worker’s /healthz and /readyz',
    usual: 'a free port for each',
    launcher: true,
  }),
  TRUSTED_PROXIES: z
    .string()
    .refine(
      (text) => text === '' || isTrustedProxies(text),
      'must be a number of proxies, or CIDRs separated by commas',
    )
    .default('')
    .meta({
      description: 'Number or networks of trusted proxies; live banks require it',
      usual: '1 if PUBLIC_URL is https',
    }),
  SECOND_FACTOR: z.enum(['optional', 'required']).default('optional').meta({
    description:
      'required: dashboard users need a [second factor](docs/dashboard.md#second-factor) to act on live',
  }),
  SMTP_URL: z
    .string()
    .refine((text) => text === '' || isSmtpUrl(text), SMTP_URL_SYNTAX)
    .default('')
    .meta({
      description:
        '[Mail server](docs/dashboard.md#mail): `smtps://USER:PASSWORD@HOST:PORT?from=ADDRESS`, or `file:///PATH` of a file with it, mode 0600',
      usual: 'none: no mail',
    }),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .meta({ description: 'fatal, error, warn, info, debug, trace or silent' }),
  APPROVAL_LIMIT: Limit.meta({
    description:
      'Minor units over 24 hours that one operator may credit, and one merchant receive, without a [second operator](docs/operators.md#approvals): 100000 for all currencies, or EUR=100000,JPY=150000',
    usual: 'about 1,000 euros',
  }),
  APPROVAL_LIMIT_DAY: Limit.meta({
    description: 'The same of all operators and merchants together',
    usual: 'ten times APPROVAL_LIMIT',
  }),
  OPERATOR_KEY: z.string().optional().meta({
    description:
      'Your [operator key](docs/operators.md#operators-and-their-keys) for commands on live',
    usual: 'none',
  }),
});

/** Variables of libraries that the service reads, too. */
export const LIBRARY_VARIABLES = z.object({
  TEMPORAL_NAMESPACE: z.string().default('default'),
  TEMPORAL_DEPLOYMENT_NAME: z.string().default(''),
  TEMPORAL_WORKER_BUILD_ID: z.string().default(''),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.union([z.literal(''), z.url()]).default(''),
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
});

export const LIBRARIES = {
  'TEMPORAL_*':
    'Namespace, TLS, API key and worker version, as [in Temporal’s tools](https://docs.temporal.io/references/client-environment-configuration)',
  'OTEL_*':
    'Collector of traces (`OTEL_EXPORTER_OTLP_ENDPOINT`) and [OpenTelemetry’s other settings](https://opentelemetry.io/docs/languages/sdk-configuration/)',
} as const;
