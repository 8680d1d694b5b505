(* Reads all of its standard input, and writes it backwards, line by line. *)

let rec lines acc =
  match input_line stdin with
  | line -> lines (line :: acc)
  | exception End_of_file -> acc

let reverse s =
  let n = String.length s in
  String.init n (fun i -> s.[n - 1 - i])

let () =
  let all = lines [] in
  List.iter (fun line -> print_endline (reverse line)) all;
  prerr_endline (string_of_int (List.length all))
