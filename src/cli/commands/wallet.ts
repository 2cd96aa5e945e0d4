import { z } from 'zod';
import { NETWORKS } from '../../domain/crypto/assets';
import { isLive } from '../../domain/environment';
import { findAccount } from '../../service/merchants/accounts';
import { listWallets, setWallet } from '../../service/money/wallets';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Env } from '../options';
import { formatTime, printFields, printList } from '../output';

const set = defineCommand({
  name: 'set',
  description: 'register the wallet of an account on a network',
  options: z.object({
    account_id: AccountId,
    env: Env,
    network: z.enum(NETWORKS).describe('network of its assets'),
    address: z.string().describe('address, with its checksum'),
  }),
  notes: `
Settlements of every asset on the network go to it. On live it takes effect after 24 hours, in which nothing
is settled: a wallet that is replaced gets nothing more.`,
  example:
    'wallet set acct_… --env sandbox --network ethereum --address 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  run: async (context, { account_id, env, ...wallet }) => {
    const deps = await context.actingDeps();
    await findAccount(deps.stores, account_id);
    const json = await setWallet(deps, { account_id, livemode: isLive(env), ...wallet });
    printFields(context, { json }, [
      ['Network', json.network],
      ['Address', json.address],
      ['Takes effect', formatTime(json.counts_from)],
      ['Until then', json.paused_until === null ? '-' : 'nothing is settled'],
    ]);
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show the wallets of an account in one environment',
  options: z.object({ account_id: AccountId, env: Env }),
  example: 'wallet show acct_… --env sandbox',
  run: async (context, { account_id, env }) => {
    const deps = await context.readDeps();
    await findAccount(deps.stores, account_id);
    printList(context, {
      rows: await listWallets(deps, account_id, isLive(env)),
      present: (wallet) => wallet,
      columns: ['NETWORK', 'ADDRESS', 'TAKES EFFECT', 'SETTLEMENTS GO TO'],
      cells: ({ network, address, counts_from, counting, paused_until }) => [
        network,
        address,
        formatTime(counts_from),
        counting ?? `nothing until ${formatTime(paused_until)}`,
      ],
      none: 'No wallet is registered.',
    });
  },
});

export const walletCommands = defineGroup({
  name: 'wallet',
  description: 'wallets to which the balances of crypto assets are paid out',
  commands: [set, show],
});
