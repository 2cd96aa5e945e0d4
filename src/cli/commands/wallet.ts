import { type Command, Option } from 'commander';
import { NETWORKS, type Network } from '../../domain/crypto';
import { type Env, isLive } from '../../domain/environment';
import { type ShownWallet, setWallet, walletsOf } from '../../merchants/wallet';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { envOption } from '../options';
import { fields, table, when } from '../output';

const SET_EXAMPLE = `npm run -s cli -- wallet set acct_… --env sandbox --network ethereum \\
    --address 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed`;
const EXAMPLES = {
  group: `
Examples:
  ${SET_EXAMPLE}
  npm run -s cli -- wallet show acct_… --env sandbox`,
  set: `
Settlements of every coin on the network go to it. The checksum of the address is verified. On live
it counts after 24 hours; until then settlements go to the one before it, if there is one.

Example:
  ${SET_EXAMPLE} --json
  {"network", "address", "counts_from", "counting", "previous"}`,
  show: `
Example:
  npm run -s cli -- wallet show acct_… --env live --json
  {"data": [{"network", "address", "counts_from", "counting", "previous"}]}`,
};

interface SetOptions {
  env: Env;
  network: Network;
  address: string;
}

export function addWalletCommands(program: Command, context: CliContext): void {
  const group = program
    .command('wallet')
    .description('wallets to which the balances of coins are paid out')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('set')
    .description('register the wallet of an account on a network')
    .argument('<account_id>')
    .addOption(envOption())
    .addOption(
      new Option('--network <network>', 'network of its coins')
        .choices([...NETWORKS])
        .makeOptionMandatory(),
    )
    .requiredOption('--address <address>', 'address, with its checksum')
    .addHelpText('after', EXAMPLES.set)
    .action((id: string, options: SetOptions) => set(context, id, options));
  group
    .command('show')
    .description('show the wallets of an account in one environment')
    .argument('<account_id>')
    .addOption(envOption())
    .addHelpText('after', EXAMPLES.show)
    .action((id: string, options: { env: Env }) => show(context, id, options.env));
}

async function set(
  context: CliContext,
  id: string,
  { env, network, address }: SetOptions,
): Promise<void> {
  const acting = await context.acting();
  const { _id: account_id } = await findAccount(acting.stores, id);
  const wallet = await setWallet(acting, { account_id, livemode: isLive(env), network, address });
  context.print({
    json: wallet,
    text: fields([
      ['Network', wallet.network],
      ['Address', wallet.address],
      ['Counts from', when(wallet.counts_from)],
      ['Until then', wallet.previous ?? '-'],
    ]),
  });
}

async function show(context: CliContext, id: string, env: Env): Promise<void> {
  const deps = { stores: await context.stores(), now: context.now };
  const { _id: account_id } = await findAccount(deps.stores, id);
  const data = await walletsOf(deps, account_id, isLive(env));
  const rows = data.map((wallet: ShownWallet) => [
    wallet.network,
    wallet.address,
    when(wallet.counts_from),
    wallet.counting ?? '-',
  ]);
  const heading = ['NETWORK', 'ADDRESS', 'COUNTS FROM', 'SETTLEMENTS GO TO'];
  context.print({ json: { data }, text: table(heading, rows, 'No wallet is registered.') });
}
