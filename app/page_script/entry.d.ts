/** The definitions of all terms, by the code of their language. */
declare const GLOSSARY: Record<string, [meaning: string, forms: string[]][]>;
/** An opaque identifier of the server's version. */
declare const SERVER: string;
/** The styles of the board in a notebook. */
declare const CSS_OF_BOARD: string;
