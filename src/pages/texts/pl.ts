import type { Texts } from './texts';

export const pl: Texts = {
  name: 'Polski',
  frame: {
    language: 'Język',
    secure: 'Bezpieczna strona płatności.',
    secureOnce: 'Bezpieczna strona płatności. Ten link działa tylko raz.',
    backToShop: 'Wróć do sklepu',
    backTo: 'Wróć do {merchant}',
    reference: 'Numer referencyjny',
  },
  pay: {
    sandbox: 'Środowisko testowe: pieniądze nie są pobierane.',
    title: 'Zapłać {amount} – {merchant}',
    summary: '{amount} dla {merchant}',
    amount: 'Kwota do zapłaty',
    method: 'Metoda płatności',
    payBy: 'Zapłać do',
    cancel: 'Anuluj płatność',
    cancelBusy: 'Anulowanie…',
  },
  method: {
    continue: 'Przejdź do {method}',
    opening: 'Otwieranie {method}',
    openingBusy: 'Otwieranie {method}…',
  },
  bank: {
    name: 'Twój bank',
    continue: 'Przejdź do swojego banku',
    opening: 'Otwieranie strony banku',
    openingBusy: 'Otwieranie strony banku…',
  },
  wait: {
    progress: 'Proszę czekać',
    opening: 'Bank przygotowuje płatność. Za chwilę nastąpi przekierowanie.',
    openingLater: 'Trwa to dłużej niż zwykle. Prosimy pozostać na tej stronie.',
    title: 'Czekamy na odpowiedź banku',
    answer: 'Strona przejdzie dalej sama, gdy tylko bank odpowie.',
    answerLater:
      'Nie ma jeszcze odpowiedzi. Jeśli płatność nie została wykonana, prosimy wrócić do banku ' +
      'lub anulować płatność.',
    backToBank: 'Wróć do banku',
  },
  transfer: {
    show: 'Pokaż dane do przelewu',
    title: 'Zapłać przelewem',
    holder: 'Odbiorca',
    reference: 'Tytuł przelewu',
    copy: 'Kopiuj',
    exactly:
      'Prosimy przelać dokładnie tę kwotę i podać tytuł przelewu. Bez niego sklep nie wie, za co ' +
      'została wpłacona.',
    confirmed:
      'Płatność jest potwierdzona, gdy przelew dotrze, zwykle następnego dnia roboczego. Można ' +
      'zamknąć tę stronę: powiadomimy sklep.',
    sent: 'Po wysłaniu przelewu prosimy nie anulować płatności.',
  },
  outcome: {
    open: 'Ta płatność jest w toku',
    paid: 'Zapłacono',
    failed: 'Płatność nie powiodła się',
    cancelled: 'Płatność została anulowana',
    expired: 'Ta płatność wygasła',
  },
  notice: {
    unknown: {
      title: 'Nie ma takiej płatności',
      text: 'Link może być niepełny. Prosimy wrócić do sklepu i rozpocząć płatność od nowa.',
    },
    taken: {
      title: 'Ten link został już użyty',
      text:
        'Link do płatności działa tylko raz, w przeglądarce, w której otwarto go najpierw. ' +
        'Prosimy kontynuować w niej albo wrócić do sklepu i zacząć od nowa.',
    },
    expired: {
      title: 'Ten link do płatności wygasł',
      text:
        'Nie można już tutaj zapłacić. Jeśli płatność została właśnie wykonana, prosimy nie ' +
        'płacić ponownie: bank powiadomi sklep. W przeciwnym razie prosimy wrócić do sklepu i ' +
        'zacząć od nowa.',
    },
    ended: {
      title: 'Ta płatność jest zamknięta',
      text: 'Link już nie działa. Zamówienie można zobaczyć w sklepie.',
    },
    foreign: {
      title: 'To żądanie nie pochodzi z tej strony',
      text: 'Prosimy ponownie otworzyć link do płatności i użyć przycisków na stronie.',
    },
    done: {
      title: 'Można zamknąć tę stronę',
      text: 'Bank sam powiadomi sklep. W sklepie przy zamówieniu widać, czy jest opłacone.',
    },
    trouble: {
      title: 'Strona jest chwilowo niedostępna',
      text: 'Problem leży po naszej stronie. Prosimy spróbować za chwilę; nie można zapłacić dwa razy.',
    },
  },
  crypto: {
    sandbox: 'Środowisko testowe: nie należy wysyłać prawdziwych środków.',
    sendExactly: 'Wyślij dokładnie',
    stillToSend: 'Pozostało do wysłania',
    qrCode: 'Kod QR dla portfela: {asset} w sieci {network}',
    addressCode:
      'Kod zawiera tylko adres: wybierz {asset} w sieci {network} w portfelu i wpisz kwotę.',
    amountCode: 'Kod z kwotą, którego nie każdy portfel odczyta',
    networkAddress: 'Adres {network}',
    copyAmount: 'Kopiuj kwotę',
    copyAddress: 'Kopiuj adres',
    copied: 'Skopiowano',
    amountCopied: 'Skopiowano kwotę',
    addressCopied: 'Skopiowano adres',
    selectToCopy: 'Jedno dotknięcie kwoty lub adresu zaznacza całość; potem można ją skopiować.',
    openWallet: 'Otwórz w portfelu',
    onlyThisAsset:
      'Należy wysłać wyłącznie {asset} w sieci {network}. Wszystko inne może przepaść. Opłata ' +
      'sieciowa jest doliczana osobno.',
    timeLeft: 'Pozostały czas',
    price: 'Cena',
    amountDue: 'Należna kwota',
    cameSoFar: 'Dotychczas otrzymano',
    surplus: 'Wysłano o {amount} za dużo. Sklep to widzi: o zwrot należy poprosić w sklepie.',
    playPayer: 'Symuluj płatność',
    deposits: 'Otrzymane wpłaty',
    confirmations: 'Potwierdzenia',
    confirmationsOf: 'Potwierdzenia: {count} z {required}',
    confirmed: 'Potwierdzono',
    heldLate: 'Za późno: prosimy o kontakt ze sklepem',
    held: 'Sprawdzamy wpłatę',
    rejected: 'Nie przyjęto: prosimy o kontakt ze sklepem',
  },
  stage: {
    top_up: {
      title: 'Część kwoty już dotarła',
      text: 'Prosimy wysłać resztę na ten sam adres przed upływem czasu. Nie trzeba zaczynać od nowa.',
    },
    confirming: {
      title: 'Płatność jest potwierdzana',
      text: 'Można zamknąć tę stronę: powiadomimy sklep.',
    },
    received: {
      title: 'Otrzymano płatność',
      text: 'Sklep został powiadomiony. Można zamknąć tę stronę.',
    },
    short: {
      title: 'Na czas dotarła zbyt mała kwota',
      text:
        'Prosimy nie wysyłać nic więcej. Pieniądze nie przepadły: prosimy o kontakt ze sklepem, ' +
        'który może je przyjąć lub zwrócić.',
    },
    held: {
      title: 'Płatność jest sprawdzana',
      text: 'Prosimy nie płacić ponownie. Pracownik sprawdza wpłatę, a sklep dowie się o wyniku.',
    },
    expired: {
      title: 'Czas na płatność minął',
      text:
        'Prosimy nie wysyłać nic więcej na ten adres. Jeśli płatność została właśnie wykonana, ' +
        'prosimy nie płacić ponownie: nic nie przepadło, a sklep może pomóc. W przeciwnym razie ' +
        'prosimy zacząć od nowa w sklepie.',
    },
  },
};
