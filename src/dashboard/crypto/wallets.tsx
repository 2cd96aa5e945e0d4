import { ActFailure } from '../../domain/act-failure';
import { ASSETS, bookCurrency, formatUnits, NETWORKS, type Network } from '../../domain/crypto';
import type { BalanceRow } from '../../ledger/book';
import { type ShownWallet, setWallet, walletsOf } from '../../merchants/wallet';
import type { DashboardDeps } from '../deps';
import { Field } from '../fields';
import { field } from '../form';
import { newFormKey } from '../once';
import { Note, PageHead, Panel, PostForm, Table, When } from '../parts';
import type { Answer, Call, Route } from '../route';
import { SETTLE_PATH } from './settle';
import { CryptoTabs } from './tabs';

const PATH = '/crypto/wallets';

export const WALLET_ROUTES: readonly Route[] = [
  { method: 'get', path: PATH, act: 'view', title: 'Wallets', handle: showWallets },
  {
    method: 'post',
    path: PATH,
    act: 'wallets.change',
    title: 'Register a wallet',
    ask: {
      question: (form) =>
        `Settlements of every coin on ${field(form, 'network')} go to ${field(form, 'address')}. ` +
        'Coins that are sent to a wrong address are lost.',
      button: 'Register wallet',
      password: true,
    },
    handle: register,
  },
];

async function showWallets(call: Call, { stores, now }: DashboardDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const [wallets, balances] = await Promise.all([
    walletsOf({ stores, now }, account_id, livemode),
    stores.ledger.balances(account_id, livemode),
  ]);
  const page = (
    <>
      <CryptoTabs call={call} />
      <PageHead title="Wallets" />
      <CoinBalances call={call} balances={balances} />
      {NETWORKS.map((network) => (
        <WalletPanel
          key={network}
          call={call}
          network={network}
          wallet={wallets.find((one) => one.network === network)}
        />
      ))}
    </>
  );
  return { page };
}

/** Balance of each coin, with the button that pays it out. */
function CoinBalances({ call, balances }: { call: Call; balances: readonly BalanceRow[] }) {
  const rows = ASSETS.flatMap((coin) => {
    const row = balances.find(({ currency }) => currency === bookCurrency(coin));
    if (row === undefined) return [];
    const { asset, network } = coin;
    return [
      {
        key: asset,
        cells: [
          coin.display_name,
          formatUnits(BigInt(row.available), coin),
          formatUnits(BigInt(row.reserved), coin),
          call.may('crypto.settle') && row.available > 0 && (
            <PostForm
              key="settle"
              viewer={call.viewer}
              action={call.href(SETTLE_PATH)}
              button="Settle now"
              tone="plain"
              hidden={{ asset, network, key: newFormKey() }}
            />
          ),
        ],
      },
    ];
  });
  return (
    <Panel title="Balances of coins">
      <Table
        label="Balances of coins"
        head={['Coin', 'Available', 'Reserved', 'Act']}
        rows={rows}
        none="No coins have been received yet."
      />
      <p class="muted small">Each balance is paid out to its wallet every day by itself.</p>
    </Panel>
  );
}

interface WalletPanelProps {
  call: Call;
  network: Network;
  wallet: ShownWallet | undefined;
}

function WalletPanel({ call, network, wallet }: WalletPanelProps) {
  const { viewer, href, may, scope, now } = call;
  return (
    <Panel title={`Wallet on ${network}`}>
      {wallet === undefined ? (
        <p class="muted">None is registered: its coins stay in their balances.</p>
      ) : (
        <p>
          <code>{wallet.address}</code>
        </p>
      )}
      {wallet !== undefined && wallet.counts_from > now.toISOString() && (
        <Note tone="note">
          {'It counts from '}
          <When at={wallet.counts_from} />
          {wallet.counting === null
            ? ' on; nothing is settled until then.'
            : ` on; until then settlements go to ${wallet.counting}.`}
        </Note>
      )}
      {may('wallets.change') && (
        <PostForm
          viewer={viewer}
          action={href(PATH)}
          button="Register wallet"
          tone="plain"
          hidden={{ network }}
        >
          <Field
            id={`address-${network}`}
            label={`Address on ${network}`}
            name="address"
            maxLength={100}
            hint={
              scope.livemode
                ? 'Its checksum is verified. It counts after 24 hours.'
                : 'Its checksum is verified.'
            }
            required
          />
        </PostForm>
      )}
    </Panel>
  );
}

async function register(call: Call, deps: DashboardDeps): Promise<Answer> {
  const { scope, form, href, audit } = call;
  const network = NETWORKS.find((one) => one === field(form, 'network'));
  if (network === undefined) return 'not_found';
  const go = href(PATH);
  try {
    const address = field(form, 'address');
    const wallet = await setWallet({ ...deps, audit }, { ...scope, network, address });
    const text =
      wallet.counting === wallet.address
        ? 'The wallet is registered.'
        : 'The wallet is registered, and counts after 24 hours.';
    return { go, flash: { tone: 'good', text } };
  } catch (error) {
    if (!(error instanceof ActFailure)) throw error;
    return { go, flash: { tone: 'bad', text: `Nothing was changed: ${error.message}` } };
  }
}
