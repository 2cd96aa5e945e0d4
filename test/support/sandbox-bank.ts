import { openProcess } from '../../connectors/kit/process';
import { createSandboxBank } from '../../connectors/sandbox/bank';
import { createRegistry } from '../../src/base/metrics';

type BankProcess = ReturnType<typeof openProcess>;
type Connections = Omit<Parameters<typeof openProcess>[0], 'registry' | 'key'>;
type Changes = NonNullable<Parameters<typeof createSandboxBank>[2]>;

/** Never stops the bank, and reads nothing. */
const OPEN_GUARD: Changes['restoreGuard'] = {
  confirm: async () => {},
  check: async () => null,
  onChange: () => {},
  protect: (activities) => activities,
};

interface Place {
  /** The product's. */
  database: string;
  keysDir: string;
  autoplay: boolean;
  /** Watches deliveries, or lets them fail. */
  changeDelivery?: (deliver: BankProcess['deliver']) => BankProcess['deliver'];
}

/** Starts the sandbox bank in this process, over connections of its test. */
export async function openSandboxBank(
  connections: Connections,
  { database, keysDir, autoplay, changeDelivery = (same) => same }: Place,
  changes: Changes = {},
) {
  const own = openProcess({ ...connections, registry: createRegistry(), key: undefined });
  const config = {
    ...{ MONGODB_DB: database, KEYS_DIR: keysDir, HOST: '127.0.0.1', SANDBOX_BANK_PORT: 0 },
    ...{ CONNECTOR_STATE_DIR: '', SANDBOX_BANK_URL: undefined },
    SANDBOX_AUTOPLAY: autoplay ? ('on' as const) : ('off' as const),
  };
  const changed = { ...own, deliver: changeDelivery(own.deliver) };
  const bank = await createSandboxBank(changed, config, { restoreGuard: OPEN_GUARD, ...changes });
  return { ...bank, stop: () => bank.stop().finally(own.close) };
}
