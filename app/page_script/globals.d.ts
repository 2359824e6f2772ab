/** The definitions of all terms, by the code of their language. */
declare const GLOSSARY: Record<string, [meaning: string, forms: string[]][]>;
/** The address of the library for charts. */
declare const PLOTLY: string;
/** The styles of the board in a notebook. */
declare const CSS_OF_BOARD: string;
