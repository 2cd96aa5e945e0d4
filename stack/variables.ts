/** A variable of the environment, as `npm start -- --help` and the README tell of it. */
export interface Variable {
  name: string;
  /** Default under `npm start`. */
  usual: string;
  /** Default of a process that is started by itself, when it differs. */
  alone?: string;
  text: string;
  /** The launcher decides it: what is set counts for processes started by themselves only. */
  decided?: true;
}

/** Every variable that the product reads. */
export const VARIABLES: readonly Variable[] = [
  { name: 'PORT', usual: '8080', text: 'Port of the API and the hosted page' },
  {
    name: 'HOST',
    usual: '127.0.0.1',
    text: 'Address on which the API and the sandbox bank listen',
  },
  {
    name: 'PUBLIC_URL',
    usual: 'http://localhost:PORT',
    text: 'Base of the links that customers open',
  },
  {
    name: 'DATA_DIR',
    usual: '.data',
    text: 'Data, logs, keys.json and stack.json, where the command line looks for addresses',
  },
  { name: 'CACHE_DIR', usual: '~/.cache/durable-payments', text: 'Servers that were fetched' },
  {
    name: 'TEMPORAL_ADDRESS',
    usual: 'none',
    alone: '127.0.0.1:7233',
    text: 'host:port of a Temporal server to use; then none is started',
  },
  { name: 'TEMPORAL_NAMESPACE', usual: 'default', text: 'Its namespace' },
  { name: 'TEMPORAL_API_KEY', usual: 'none', text: 'Key that it asks for, as Temporal Cloud does' },
  {
    name: 'TEMPORAL_TLS',
    usual: 'none',
    text: 'true: it is reached by TLS, as also with an API key or a variable below',
  },
  {
    name: 'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
    usual: 'none',
    text: 'File of the authority that signs its certificate; the usual ones when not set',
  },
  {
    name: 'TEMPORAL_TLS_CLIENT_CERT_PATH',
    usual: 'none',
    text: 'File of the certificate that a process shows it (mutual TLS)',
  },
  { name: 'TEMPORAL_TLS_CLIENT_KEY_PATH', usual: 'none', text: 'File of that certificate’s key' },
  {
    name: 'TEMPORAL_TLS_SERVER_NAME',
    usual: 'none',
    text: 'Name that its certificate has to hold; the host of its address when not set',
  },
  {
    name: 'TASK_QUEUE_PREFIX',
    usual: 'none',
    text: 'Put before the task queues, where another installation uses the same namespace',
  },
  {
    name: 'TEMPORAL_PORT',
    usual: 'a free port, kept in DATA_DIR',
    text: 'Port of the Temporal server that is started',
  },
  { name: 'TEMPORAL_UI_PORT', usual: '8233', text: 'Port of its web UI' },
  {
    name: 'MONGODB_URI',
    usual: 'none',
    alone: 'required',
    text: 'A MongoDB replica set to use; then none is started',
  },
  {
    name: 'MONGODB_PORT',
    usual: 'a free port, kept in DATA_DIR',
    text: 'Port of the MongoDB that is started',
  },
  {
    name: 'MONGODB_DB',
    usual: 'payments',
    text: 'Name of the database; the sandbox bank has one of its own',
  },
  {
    name: 'ALLOW_CLEAR_TEXT',
    usual: 'none',
    text: 'yes: Temporal and MongoDB may be on other machines without TLS',
  },
  {
    name: 'KEYS_FILE',
    usual: 'DATA_DIR/keys.json',
    alone: 'required',
    text: 'The service’s secrets, mode 0600; all processes and the command line read it',
    decided: true,
  },
  {
    name: 'KEYS_DIR',
    usual: 'none',
    text: 'Folder with the rings that recipients have of their own, where they were split off',
  },
  {
    name: 'KEYS_COMMAND',
    usual: 'none',
    text: 'Program that prints what a file of keys would hold, as from a KMS; its argument is the file’s name',
  },
  {
    name: 'SANDBOX_BANK_PORT',
    usual: 'PORT + 1',
    alone: '8081',
    text: 'Port of the sandbox bank’s pages',
  },
  {
    name: 'SANDBOX_BANK_URL',
    usual: 'http://localhost:SANDBOX_BANK_PORT',
    text: 'Their address as customers see it',
    decided: true,
  },
  {
    name: 'SANDBOX_AUTOPLAY',
    usual: 'on',
    text: 'off: the sandbox bank settles and completes nothing by itself',
  },
  {
    name: 'CONNECTOR_KEY_FILE',
    usual: 'none',
    text: 'File with the key that a connector signs its callbacks with, mode 0600; connectors/evm requires one',
  },
  {
    name: 'LIVE_CONNECTORS',
    usual: 'none',
    text: 'Live banks and chains: name=method|rail|coin,name=method',
  },
  {
    name: 'CRYPTO_WINDOWS',
    usual: '30 for each',
    text: 'Minutes that payers of a coin have: BTC=60,ETH=15',
  },
  {
    name: 'ALLOW_LIVE_DEMO',
    usual: 'none',
    text: 'yes: live banks may be tried out on the servers that npm start runs, by http',
  },
  {
    name: 'RATE_LIMIT_PER_SECOND',
    usual: '500',
    text: 'Requests a second that a key may make, counted over ten seconds',
  },
  {
    name: 'ACCOUNT_LIMIT_PER_SECOND',
    usual: '1000',
    text: 'Requests a second that all keys of an account may make in one environment',
  },
  {
    name: 'CREATE_LIMIT_PER_SECOND',
    usual: '200',
    text: 'Payments, refunds, payouts and recipients a second that an account may create in live',
  },
  {
    name: 'SANDBOX_CREATE_LIMIT_PER_SECOND',
    usual: '200',
    text: 'Likewise in the sandbox',
  },
  {
    name: 'CREATES_AT_ONCE',
    usual: '100',
    text: 'Creates that a process of the API has under way at once, in each environment; others get 503 at once',
  },
  {
    name: 'DRAIN_MS',
    usual: '0',
    text: 'Milliseconds for which the API serves on after SIGTERM, while /readyz answers 503',
    decided: true,
  },
  {
    name: 'WORKER_HEALTH_PORT',
    usual: 'none',
    text: 'Port of the worker’s own /healthz and /readyz; without one there are none',
  },
  {
    name: 'TEMPORAL_DEPLOYMENT_NAME',
    usual: 'none',
    text: 'Name of the worker’s deployment, for Worker Versioning; with the next one or not at all',
  },
  {
    name: 'TEMPORAL_WORKER_BUILD_ID',
    usual: 'none',
    text: 'Version of the worker in its deployment',
  },
  {
    name: 'WORKFLOW_SLOTS',
    usual: '40',
    text: 'Workflow tasks that a worker has in hand at once, on each of its queues',
  },
  {
    name: 'ACTIVITY_SLOTS',
    usual: '50',
    text: 'Steps of payments, refunds and payouts that a worker makes at once',
  },
  {
    name: 'DELIVERY_SLOTS',
    usual: '200',
    text: 'Webhooks that a worker posts at once',
  },
  {
    name: 'CACHED_WORKFLOWS',
    usual: '1000',
    text: 'Workflows that a worker remembers, on each of its queues; others are replayed',
  },
  {
    name: 'POLLERS_MAX',
    usual: '10',
    text: 'Most calls for tasks that a worker has open, of each kind, on each queue; above 10 their number follows the backlog',
  },
  {
    name: 'STICKY_TIMEOUT_MS',
    usual: '5000',
    text: 'Time for which a workflow waits for the worker that remembers it',
  },
  {
    name: 'RECIPIENT_DETAILS_MONTHS',
    usual: '13',
    text: 'Months after its last payout for which the details of a recipient are kept',
  },
  {
    name: 'WEBHOOK_ALLOW_PRIVATE',
    usual: 'sandbox',
    alone: 'none',
    text: 'sandbox: sandbox endpoints may be plain http on this machine; live ones never',
    decided: true,
  },
  {
    name: 'WEBHOOK_DENY_CIDRS',
    usual: 'none',
    text: 'Networks that no webhook is posted to, beside those that are not public: 198.51.100.0/24,2001:db8::/32',
  },
  {
    name: 'METRICS_HOST',
    usual: '127.0.0.1',
    text: 'Address of the Prometheus page of a process',
    decided: true,
  },
  {
    name: 'METRICS_PORT',
    usual: 'a free port for each, kept in DATA_DIR',
    alone: 'none',
    text: 'Its port; without one there is no page',
    decided: true,
  },
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    usual: 'none',
    text: 'Address of an OpenTelemetry collector (OTLP by HTTP) to which the API and the worker send traces',
  },
  {
    name: 'OTEL_TRACES_SAMPLER_ARG',
    usual: '1',
    text: 'Share of the traces that are sent, from 0 to 1',
  },
  {
    name: 'TRUSTED_PROXIES',
    usual: 'none',
    text: 'Proxies whose X-Forwarded-For counts: how many, or their networks; one where PUBLIC_URL is https',
  },
  {
    name: 'LOG_LEVEL',
    usual: 'info',
    text: 'fatal, error, warn, info, debug, trace or silent',
  },
  {
    name: 'APPROVAL_LIMIT',
    usual: '100000',
    text: 'Minor units above which two operators correct a live balance; where it is set, also fund it and mark payments settled',
  },
];

/** Variables of `connectors/evm` alone, beside those of every process that it reads too. */
export const EVM_VARIABLES: readonly Variable[] = [
  { name: 'EVM_CONNECTOR', usual: 'evm', text: 'Name of the connector, as in `LIVE_CONNECTORS`' },
  { name: 'EVM_RPC_URL_FILE', usual: 'required', text: 'File with the URL of the node' },
  {
    name: 'EVM_CHAIN_ID',
    usual: 'required',
    text: 'Chain that the node must be on: 1 for mainnet',
  },
  {
    name: 'EVM_CONFIRMATIONS',
    usual: '12',
    text: 'Blocks after which a deposit or a settlement counts, its own included',
  },
  {
    name: 'EVM_START_BLOCK',
    usual: '128 blocks before the newest',
    text: 'Block from which the first start follows the chain',
  },
  {
    name: 'EVM_TRACES',
    usual: 'off',
    text: 'on: the node has `trace_block`, and ether that contracts send is seen too',
  },
  {
    name: 'EVM_XPUB_FILE',
    usual: 'required',
    text: "File with the extended public key of m/44'/60'/0', from which addresses are derived",
  },
  {
    name: 'EVM_USDC_ADDRESS',
    usual: 'none',
    text: 'Contract of USDC, with its checksum; without it ETH alone is served',
  },
  {
    name: 'EVM_KEYSTORE_FILE',
    usual: 'required',
    text: 'Encrypted key (version 3) of the account that pays settlements',
  },
  { name: 'EVM_KEYSTORE_PASSWORD_FILE', usual: 'required', text: 'File with its password' },
  {
    name: 'EVM_SCREENING_FILE',
    usual: 'required',
    text: 'File with the addresses whose deposits are held, one a line',
  },
  { name: 'EVM_RATES', usual: 'required', text: 'Path or URL of the rates' },
  { name: 'EVM_RATES_SECONDS', usual: '300', text: 'Age from which rates are refused' },
  {
    name: 'EVM_FEE_MAX_GWEI',
    usual: '200',
    text: 'Most gwei a unit of gas; settlements wait while the chain is dearer',
  },
  {
    name: 'EVM_RAISE_SECONDS',
    usual: '180',
    text: 'Time after which a settlement that no block has taken pays more',
  },
  { name: 'EVM_POLL_MS', usual: '4000', text: 'Time between two looks at the chain' },
];
