import type { IconName } from './icons';
import { renderPage, Sign } from './layout';
import type { PayAssets } from './pay-views';

interface NoticeWords {
  status: number;
  icon: IconName;
  title: string;
  text: string;
}

/** Notices; they name neither shop nor amount. */
export const NOTICES = {
  unknown: {
    status: 404,
    icon: 'link',
    title: 'There is no such payment',
    text: 'The link may be incomplete. Go back to the shop and start the payment again.',
  },
  taken: {
    status: 410,
    icon: 'link',
    title: 'This link was used already',
    text:
      'A payment link works once, in the browser that opened it first. Continue there, or go ' +
      'back to the shop and start again.',
  },
  expired: {
    status: 410,
    icon: 'clock',
    title: 'This payment link has expired',
    text:
      'It can no longer be paid here. If you have just paid, do not pay again: the shop hears from ' +
      'the bank. Otherwise go back to the shop and start again.',
  },
  ended: {
    status: 410,
    icon: 'link',
    title: 'This payment is closed',
    text: 'The link no longer works. Go back to the shop to see your order.',
  },
  foreign: {
    status: 403,
    icon: 'cross',
    title: 'That did not come from this page',
    text: 'Open the payment link again and use the buttons on the page.',
  },
  done: {
    status: 200,
    icon: 'check',
    title: 'You can close this page',
    text: 'The shop hears from the bank by itself. Your order there shows whether it is paid.',
  },
  trouble: {
    status: 503,
    icon: 'clock',
    title: 'We can’t show this right now',
    text: 'The trouble is on our side. Please try again in a moment; you can’t pay twice.',
  },
} as const satisfies Record<string, NoticeWords>;

export type NoticeName = keyof typeof NOTICES;

/** @param onward URL for the browser that opened the payment; null for any other */
export function noticePage(name: NoticeName, assets: PayAssets, onward: string | null): string {
  const { icon, title, text } = NOTICES[name];
  return renderPage({
    title,
    stylesheet: assets.css,
    footer: 'Secure payment page.',
    children: (
      <>
        <Sign icon={icon} title={title} text={text} />
        {onward !== null && (
          <a class="button" href={onward}>
            Back to the shop
          </a>
        )}
      </>
    ),
  });
}
