(* Which of the standard descriptors are open, and the numbers that files get. Told by the exit code
   too: where output is closed, nothing can be said. *)

let is_open fd = match Unix.fstat fd with _ -> true | exception Unix.Unix_error _ -> false

let () =
  let lists = List.init 1000 (fun n -> List.init 100 (fun i -> n * i)) in
  let open_ = List.map is_open [ Unix.stdin; Unix.stdout; Unix.stderr ] in
  let file = Unix.openfile "/dev/null" [ Unix.O_RDONLY ] 0 in
  let number : int = Obj.magic file in
  List.iter (fun o -> prerr_endline (string_of_bool o)) open_;
  prerr_endline (string_of_int number);
  let sum = List.fold_left (fun sum o -> (2 * sum) + Bool.to_int o) 0 open_ in
  exit ((10 * number) + sum + (List.length lists / 1000) - 1)
